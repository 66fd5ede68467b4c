// Looks at a file before it is attached: whether it is an image or a sound that this browser can read, and how large it is.

import { MOST_BYTES, mediumOf, typeOf, type Attachment } from "../chat/attachments";
import { secondsOf } from "./sound";

/** Pixels of the largest image: `MAX_PIXELS` in `crates/media`. */
const MOST_PIXELS = 100_000_000;

export interface Examined extends Omit<Attachment, "id"> {
  content: Blob;
}

/** Rejects with a code that `text/errors.ts` explains. `longest`: seconds of the longest sound. */
export async function examineFile(file: File, longest: number): Promise<Examined> {
  const type = typeOf(file);
  if (type === undefined) {
    throw refusal("attachment.kind", `${file.name} has the type ${file.type || "unknown"}`, {});
  }
  if (file.size > MOST_BYTES) {
    throw refusal("attachment.too_large", `${file.name} has ${file.size} bytes; ${MOST_BYTES} are allowed`, { bytes: file.size, most: MOST_BYTES });
  }
  // The type is kept with the content: the system may not have known it.
  const content = file.type === type ? file : new Blob([file], { type });
  const common = { name: file.name, type, bytes: file.size, content };
  if (mediumOf(type) === "image") {
    return { ...common, medium: "image", ...(await sizeOf(content)) };
  }
  const seconds = await secondsOf(content, longest);
  if (seconds > longest) {
    throw refusal("media.sound.too_long", `${file.name} has ${seconds} seconds; ${longest} are allowed`, { seconds, longest });
  }
  return { ...common, medium: "audio", seconds };
}

async function sizeOf(content: Blob): Promise<{ width: number; height: number }> {
  let bitmap: ImageBitmap;
  try {
    bitmap = await createImageBitmap(content);
  } catch (error) {
    throw refusal("media.image.unknown", `the image can't be decoded: ${String(error)}`, {});
  }
  const { width, height } = bitmap;
  bitmap.close();
  if (width * height > MOST_PIXELS) {
    throw refusal("media.image.too_large", `the image has ${width}×${height} pixels; ${MOST_PIXELS} are allowed`, { width, height });
  }
  return { width, height };
}

function refusal(code: string, message: string, details: object): Error {
  return Object.assign(new Error(message), { code, details });
}
