// The kinds of values that programs give as images and sounds, and the errors of others.

import { RullamaError } from "../errors.js";

/** The kind of a value, also of one from another window: `Blob`, `ImageData`, `String` and so on. */
export function kindOf(value: unknown): string {
  return Object.prototype.toString.call(value).slice("[object ".length, -1);
}

const IMAGES: readonly string[] = ["Blob", "File", "URL", "String", "ImageBitmap", "ImageData", "HTMLCanvasElement", "OffscreenCanvas"];
const SOUNDS: readonly string[] = ["Blob", "File", "URL", "String", "AudioBuffer", "Float32Array"];

/** Refuses a value that is no image or no sound. */
export function checkKind(medium: "image" | "audio", value: unknown): void {
  const kinds = medium === "image" ? IMAGES : SOUNDS;
  if (!kinds.includes(kindOf(value))) {
    const [name, list] = medium === "image" ? ["An image", "images"] : ["A sound", "audio"];
    throw new RullamaError("chat.wrong_type", `${name} in \`${list}\` is of the kind ${kindOf(value)}. It must be one of ${kinds.join(", ")}.`);
  }
}
