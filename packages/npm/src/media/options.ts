// The options of a reply that concern images and sounds.

import { callable, checkOption } from "../check.js";
import type { ChatOptions, ImageBudget } from "../types.js";

/** The budgets that models were trained with. */
export const IMAGE_BUDGETS: readonly ImageBudget[] = [70, 140, 280, 560, 1120];

const budget = { words: `a number among ${IMAGE_BUDGETS.join(", ")}`, is: (value: unknown) => IMAGE_BUDGETS.includes(value as ImageBudget) };

/** Takes them out of the options of a reply. `rest` is what the engine reads. */
export function takeMediaOptions({ imageBudget, onEncode, ...rest }: ChatOptions) {
  checkOption("imageBudget", imageBudget, budget);
  checkOption("onEncode", onEncode, callable);
  return { imageBudget, onEncode, rest };
}
