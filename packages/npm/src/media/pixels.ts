// Reads the pixels of a decoded image.

import { RullamaError } from "../errors.js";
import { straightPixels } from "./straight.js";

/** Pixels along a side of the canvas. Some browsers refuse canvases that are larger than their screens need. */
const TILE = 2048;

/** The pixels as bytes: red, green, blue and opacity, row by row. */
export async function pixelsOf(bitmap: ImageBitmap): Promise<Uint8Array<ArrayBuffer>> {
  const pixels = memoryFor(bitmap);
  const isOpaque = copyTiles(bitmap, pixels);
  // A canvas multiplies colours with their opacity, so those of transparent pixels are lost there.
  return isOpaque ? pixels : ((await straightPixels(bitmap)) ?? pixels);
}

function memoryFor({ width, height }: ImageBitmap): Uint8Array<ArrayBuffer> {
  const bytes = 4 * width * height;
  try {
    return new Uint8Array(bytes);
  } catch (cause) {
    const message = `There is no memory for an image of ${width}×${height}. Make it smaller.`;
    throw new RullamaError("media.image.memory", message, { cause, details: { bytes } });
  }
}

/** Fills `pixels` by a canvas, and tells whether all of them are opaque. */
function copyTiles(bitmap: ImageBitmap, pixels: Uint8Array): boolean {
  const { width, height } = bitmap;
  const context = canvas(Math.min(width, TILE), Math.min(height, TILE));
  // Each tile replaces the one before.
  context.globalCompositeOperation = "copy";
  let isOpaque = true;
  for (let top = 0; top < height; top += TILE) {
    for (let left = 0; left < width; left += TILE) {
      const [columns, rows] = [Math.min(TILE, width - left), Math.min(TILE, height - top)];
      context.drawImage(bitmap, -left, -top);
      const { data } = context.getImageData(0, 0, columns, rows);
      isOpaque &&= isAllOpaque(data);
      for (let row = 0; row < rows; row++) {
        pixels.set(data.subarray(4 * row * columns, 4 * (row + 1) * columns), 4 * ((top + row) * width + left));
      }
    }
  }
  return isOpaque;
}

function isAllOpaque(data: Uint8ClampedArray): boolean {
  for (let at = 3; at < data.length; at += 4) {
    if (data[at] !== 255) {
      return false;
    }
  }
  return true;
}

type Context = Pick<OffscreenCanvasRenderingContext2D, "drawImage" | "getImageData" | "globalCompositeOperation">;

function canvas(width: number, height: number): Context {
  // The pixels are read from memory, so a canvas on the GPU would be slower.
  const options: CanvasRenderingContext2DSettings = { willReadFrequently: true };
  const context =
    typeof OffscreenCanvas === "undefined"
      ? Object.assign(document.createElement("canvas"), { width, height }).getContext("2d", options)
      : new OffscreenCanvas(width, height).getContext("2d", options);
  if (!context) {
    throw new RullamaError("media.image.no_decoder", "Images can't be decoded here: the browser gives no canvas. Pass `ImageData`.");
  }
  return context;
}
