// Messages without their images and sounds: lists of names stand for these.

import { RullamaError } from "../errors.js";
import type { ContentPart, ImageBudget, Message } from "../types.js";
import { base64Bytes } from "./fetch.js";
import { checkKind } from "./kinds.js";

/** Takes an image or a sound of a message, and gives the name that stands for it. */
export type Take = (medium: "image" | "audio", source: unknown, budget?: ImageBudget) => string;

/** The budgets that OpenAI's levels of detail stand for. */
const DETAIL: Readonly<Record<string, ImageBudget | undefined>> = { auto: undefined, low: 70, high: 1120 };

/** A message whose content is a text and whose `images` and `audio` are names. One without media stays as it is. */
export function withoutMedia(message: Message, take: Take): object {
  if (typeof message !== "object" || message === null) {
    return message;
  }
  const { content, images, audio } = message;
  if (!Array.isArray(content) && !images && !audio) {
    return message;
  }
  const parts = Array.isArray(content) ? content.map(readPart) : [];
  const named = {
    images: [
      ...list("images", images).map((source) => taken(take, "image", source)),
      ...parts.flatMap(({ image, budget }) => (image === undefined ? [] : [taken(take, "image", image, budget)])),
    ],
    audio: [
      ...list("audio", audio).map((source) => taken(take, "audio", source)),
      ...parts.flatMap(({ audio }) => (audio === undefined ? [] : [taken(take, "audio", audio)])),
    ],
  };
  const { images: _, audio: __, ...rest } = message;
  const text = Array.isArray(content) ? { content: parts.map(({ text }) => text ?? "").join("") } : {};
  return {
    ...rest,
    ...text,
    ...(named.images.length > 0 ? { images: named.images } : {}),
    ...(named.audio.length > 0 ? { audio: named.audio } : {}),
  };
}

function taken(take: Take, medium: "image" | "audio", source: unknown, budget?: ImageBudget): string {
  checkKind(medium, source);
  return take(medium, source, budget);
}

function list(name: string, value: readonly unknown[] | undefined | null): readonly unknown[] {
  if (value !== undefined && value !== null && !Array.isArray(value)) {
    throw new RullamaError("chat.wrong_type", `\`${name}\` of a message must be a list.`);
  }
  return value ?? [];
}

interface Part {
  text?: string;
  image?: string;
  budget?: ImageBudget | undefined;
  audio?: Blob;
}

function readPart(part: ContentPart): Part {
  switch (part?.type) {
    case "text":
      if (typeof part.text === "string") {
        return { text: part.text };
      }
      throw new RullamaError("chat.wrong_type", "A content part of the type `text` must have a `text`.");
    case "image_url": {
      const { url, detail = "auto" } = part.image_url ?? {};
      if (typeof url !== "string") {
        throw new RullamaError("chat.wrong_type", "A content part of the type `image_url` must have an `image_url` with a `url`.");
      }
      if (!Object.hasOwn(DETAIL, detail)) {
        const levels = Object.keys(DETAIL).join(", ");
        throw new RullamaError("option.out_of_range", `\`image_url.detail\` is ${JSON.stringify(detail)}. Supported: ${levels}.`);
      }
      return { image: url, budget: DETAIL[detail] };
    }
    case "input_audio":
      return { audio: soundFile(part.input_audio) };
    default: {
      const type = JSON.stringify((part as { type?: unknown } | null)?.type);
      throw new RullamaError("chat.wrong_type", `A content part has the type ${type}. Supported: text, image_url, input_audio.`);
    }
  }
}

function soundFile(given: { data: string; format?: string } | undefined): Blob {
  try {
    if (typeof given?.data === "string") {
      return new Blob([base64Bytes(given.data)], { type: given.format ? `audio/${given.format}` : "" });
    }
  } catch {
    // The error below says what is expected.
  }
  throw new RullamaError("chat.wrong_type", "A content part of the type `input_audio` must have an `input_audio` with a file as base64 in `data`.");
}
