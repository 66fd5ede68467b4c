// Whether the loaded model takes images and sounds.

import { LONGEST_SOUND, type Attachment, type Medium } from "../chat/attachments";
import type { ModelHost } from "../model/host";

/** What the loaded model takes. Without a loaded model both are possible: the message waits for the model. */
export interface Senses {
  image: boolean;
  audio: boolean;
  /** The loaded model's name. */
  model: string | undefined;
  /** Seconds of the longest sound. */
  longest: number;
}

export function sensesOf({ state }: Pick<ModelHost, "state">): Senses {
  if (state.kind !== "ready") {
    return { image: true, audio: true, model: undefined, longest: LONGEST_SOUND };
  }
  const { media } = state.engine.info;
  return { image: media?.image === true, audio: media?.audio === true, model: state.label, longest: media?.longestSound || LONGEST_SOUND };
}

/** Why the loaded model can't take a medium; undefined if it can. */
export function reasonAgainst(medium: Medium, senses: Senses): string | undefined {
  if (senses[medium]) {
    return undefined;
  }
  const name = senses.model ?? "The model";
  if (!senses.image && !senses.audio) {
    return `${name} reads text only. Images and sounds need a model that takes them.`;
  }
  return medium === "image" ? `${name} takes no images.` : `${name} takes no sounds.`;
}

/** Why the loaded model can't take one of these; undefined if it can take them all. */
export function reasonAgainstAny(attachments: readonly Attachment[], senses: Senses): string | undefined {
  return attachments.map(({ medium }) => reasonAgainst(medium, senses)).find((reason) => reason !== undefined);
}
