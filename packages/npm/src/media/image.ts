// Decodes images with the browser: upright, with the colours as they are in the file.
//
// The model was trained with images that Hugging Face transformers decodes. It applies neither colour profiles nor opacity, so neither
// does this.

import { RullamaError } from "../errors.js";
import type { DecodedImage } from "../protocol.js";
import type { ImageSource } from "../types.js";
import { reasonOf, unreadable } from "./errors.js";
import { fetchBlob } from "./fetch.js";
import { formatOf, READ_EVERYWHERE } from "./formats.js";
import { kindOf } from "./kinds.js";
import { pixelsOf } from "./pixels.js";

/** The most pixels of an image, and the most along a side: those of the engine (`crates/media`). */
const MOST_PIXELS = 100_000_000;
const LONGEST_SIDE = 1_000_000;

/** `imageOrientation` is left out: the default turns images as their files say, also in browsers with older names for it. */
const AS_STORED: ImageBitmapOptions = { premultiplyAlpha: "none", colorSpaceConversion: "none" };

/** The image as it is now, if the program may change it later. */
export async function keepImage(source: ImageSource): Promise<ImageSource> {
  switch (kindOf(source)) {
    case "ImageData":
    case "ImageBitmap":
    case "HTMLCanvasElement":
    case "OffscreenCanvas": {
      const image = source as ImageBitmap | ImageData;
      checkSize(image.width, image.height);
      return hasBytes(image) ? new ImageData(image.data.slice(), image.width, image.height) : bitmapOf(image);
    }
    default:
      return source;
  }
}

/** The pixels of an image. */
export async function decodeImage(source: ImageSource, signal?: AbortSignal): Promise<DecodedImage> {
  if (hasBytes(source)) {
    const { data, width, height } = source;
    checkSize(width, height);
    return { rgba: new Uint8Array(data), width, height };
  }
  const isFile = typeof source === "string" || kindOf(source) === "URL";
  const bitmap = await bitmapOf(isFile ? await fetchBlob(source as string | URL, signal) : (source as Drawable));
  try {
    const { width, height } = bitmap;
    checkSize(width, height);
    return { rgba: await pixelsOf(bitmap), width, height };
  } finally {
    bitmap.close();
  }
}

/** Whether these are pixels as bytes. Some browsers also have pixels of 16-bit floating point, which are drawn. */
function hasBytes(source: unknown): source is ImageData & { data: Uint8ClampedArray<ArrayBuffer> } {
  return kindOf(source) === "ImageData" && kindOf((source as ImageData).data) === "Uint8ClampedArray";
}

type Drawable = Blob | ImageBitmap | ImageData | HTMLCanvasElement | OffscreenCanvas;

async function bitmapOf(source: Drawable): Promise<ImageBitmap> {
  if (typeof createImageBitmap === "undefined") {
    throw new RullamaError("media.image.no_decoder", "Images can't be decoded here: there is no `createImageBitmap`. Pass `ImageData`.");
  }
  try {
    return await createImageBitmap(source, AS_STORED);
  } catch (cause) {
    throw source instanceof Blob ? await fileError(source, cause) : broken(cause);
  }
}

/** The error of a file that the browser does not decode. */
async function fileError(file: Blob, cause: unknown): Promise<RullamaError> {
  let format: string | undefined;
  try {
    format = await formatOf("image", file);
  } catch (cause) {
    return unreadable(file, cause);
  }
  if (format !== undefined && READ_EVERYWHERE.includes(format)) {
    return broken(cause);
  }
  const what = format === undefined ? "This is not an image that can be read" : `This browser can't read ${format} images`;
  return new RullamaError("media.image.unknown", `${what}. Use PNG, JPEG, WebP, GIF or BMP.`, { cause });
}

function broken(cause: unknown): RullamaError {
  return new RullamaError("media.image.broken", `The image can't be decoded: ${reasonOf(cause)}.`, { cause });
}

function checkSize(width: number, height: number): void {
  if (width === 0 || height === 0) {
    throw new RullamaError("media.image.empty", `The image has no pixels: it is ${width}×${height}.`);
  }
  if (width * height > MOST_PIXELS || Math.max(width, height) > LONGEST_SIDE) {
    throw new RullamaError(
      "media.image.too_large",
      `The image is too large: ${width}×${height} (at most ${MOST_PIXELS} pixels, and ${LONGEST_SIDE} along a side). Make it smaller.`,
    );
  }
}
