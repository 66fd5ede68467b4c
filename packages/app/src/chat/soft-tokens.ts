// How many tokens of the context an image or a sound takes. The engine knows it exactly when it has encoded it; this is the same rule,
// for the meter and for making room.

import type { EngineInfo, ImageBudget } from "rullama";
import type { Attachment } from "./attachments";

/** The tokens that each image may take at most. */
export const BUDGETS: readonly ImageBudget[] = [70, 140, 280, 560, 1120];

export const DEFAULT_BUDGET: ImageBudget = 280;

/** The image detail that is used: the wanted one, if the model was trained with it. */
export function budgetFor({ media }: Pick<EngineInfo, "media">, wanted: ImageBudget): ImageBudget {
  const { imageBudgets = [], defaultImageBudget = wanted } = media ?? {};
  return imageBudgets.length === 0 || imageBudgets.includes(wanted) ? wanted : defaultImageBudget;
}

/** Pixels along a side of the square that becomes one token. */
const SIDE = 48;

/** Tokens of a second of sound. */
const PER_SECOND = 25;

/** The tokens that mark the beginning and the end of each. */
const MARKS = 2;

/** The tokens of attachments. Those whose size is unknown count as if they were as large as possible. */
export function softTokens(attachments: readonly Attachment[], budget: ImageBudget): number {
  return attachments.reduce((sum, one) => sum + MARKS + (one.medium === "image" ? ofImage(one, budget) : ofSound(one)), 0);
}

/** The image is scaled to as many squares as the budget allows, at nearly the same aspect ratio: `Budget::fit` in `crates/media`. */
function ofImage({ width, height }: Attachment, budget: ImageBudget): number {
  if (!width || !height) {
    return budget;
  }
  const factor = Math.sqrt((budget * SIDE * SIDE) / (width * height));
  const across = Math.floor((factor * width) / SIDE);
  const down = Math.floor((factor * height) / SIDE);
  // A thin image is one square wide.
  return across === 0 || down === 0 ? Math.min(Math.max(1, Math.floor(Math.max(width, height) / Math.min(width, height))), budget) : across * down;
}

function ofSound({ seconds = 30 }: Attachment): number {
  return Math.ceil(seconds * PER_SECOND);
}
