// Decoding of images and sounds where no browser is needed: sizes, files from servers, and errors. What browsers decode is tested in them
// (test/browser/media.mjs).

import { beforeEach, expect, test, vi } from "vitest";

import { fetchBlob } from "../../src/media/fetch.js";
import { formatOf } from "../../src/media/formats.js";
import { decodeImage, keepImage } from "../../src/media/image.js";
import { decodeSound } from "../../src/media/sound.js";

/** A bitmap of this size, as the browser decodes it. Whether its pixels were read, and whether it was closed. */
function bitmap(width: number, height: number) {
  return { width, height, read: false, closed: false, close() { this.closed = true; }, [Symbol.toStringTag]: "ImageBitmap" };
}

beforeEach(() => void vi.unstubAllGlobals());

test.each([
  [10_001, 10_000, "media.image.too_large", "The image is too large: 10001×10000"],
  [1_000_001, 1, "media.image.too_large", "The image is too large: 1000001×1"],
  [0, 7, "media.image.empty", "The image has no pixels: it is 0×7."],
])("an image of %d×%d is refused before its pixels are read", async (width, height, code, message) => {
  const decoded = bitmap(width, height);
  vi.stubGlobal("createImageBitmap", async () => decoded);
  await expect(decodeImage(new Blob(["image"]))).rejects.toMatchObject({ code, message: expect.stringContaining(message) });
  expect(decoded.closed).toBe(true);
  // A bitmap or a canvas says its size itself.
  vi.stubGlobal("createImageBitmap", () => Promise.reject(new Error("it must not be copied")));
  await expect(keepImage(bitmap(width, height) as never)).rejects.toMatchObject({ code });
});

test("the pixels of ImageData need no decoder", async () => {
  const data = Uint8ClampedArray.of(1, 2, 3, 0, 5, 6, 7, 255);
  const image = { data, width: 2, height: 1, [Symbol.toStringTag]: "ImageData" };
  const { rgba, width, height } = await decodeImage(image as never);
  data.fill(9);
  expect([[...rgba], width, height]).toEqual([[1, 2, 3, 0, 5, 6, 7, 255], 2, 1]);
});

test.each<[string, BlobPart, string, string]>([
  ["a damaged JPEG", Uint8Array.of(0xff, 0xd8, 0xff, 0), "media.image.broken", "can't be decoded: no image."],
  ["a photo of a phone", "\0\0\0\x18ftypheic", "media.image.unknown", "This browser can't read HEIC images. Use PNG"],
  ["a text", "hello", "media.image.unknown", "This is not an image that can be read."],
])("%s that the browser does not decode has an error of its own", async (_, content, code, message) => {
  vi.stubGlobal("createImageBitmap", () => Promise.reject(new Error("no image.")));
  await expect(decodeImage(new Blob([content]))).rejects.toMatchObject({ code, message: expect.stringContaining(message) });
});

test("without the browser's decoders, files are refused and samples are not", async () => {
  await expect(decodeImage(new Blob(["image"]))).rejects.toMatchObject({ code: "media.image.no_decoder" });
  await expect(decodeSound(new Blob(["sound"]))).rejects.toMatchObject({ code: "media.sound.no_decoder" });
  expect((await decodeSound(Float32Array.of(0.5))).samples).toEqual(Float32Array.of(0.5));
});

test("a file that has been deleted says so", async () => {
  const gone = Object.assign(new Blob(["sound"]), { name: "a.wav", arrayBuffer: () => Promise.reject(new Error("gone")), slice: () => gone });
  vi.stubGlobal("OfflineAudioContext", class {});
  vi.stubGlobal("createImageBitmap", () => Promise.reject(new Error("no image.")));
  for (const decode of [decodeSound, decodeImage]) {
    await expect(decode(gone)).rejects.toMatchObject({ code: "source.io", message: expect.stringContaining("`a.wav` cannot be read: gone") });
  }
});

test("formats are recognised by their first bytes", async () => {
  const image = (text: string) => formatOf("image", new Blob([Uint8Array.from(text, (character) => character.charCodeAt(0))]));
  expect(await image("RIFF....WEBPVP8 ")).toBe("WebP");
  expect(await image("\x89PNG\r\n")).toBe("PNG");
  expect(await image("RIFF....WAVE")).toBeUndefined();
  expect(await formatOf("audio", new Blob(["RIFF....WAVE"]))).toBe("WAV");
});

test.each([
  ["data:,a%20b", "", "a b"],
  ["data:text/plain;charset=utf-8,%C3%A4", "text/plain", "ä"],
  ["data:image/png;name=a;base64,aGk=", "image/png", "hi"],
  ["DATA:;base64,aGk%3D", "", "hi"],
])("the data URL %s is read without a request", async (url, type, text) => {
  vi.stubGlobal("fetch", () => Promise.reject(new Error("no requests")));
  const blob = await fetchBlob(url);
  expect([blob.type, await blob.text()]).toEqual([type, text]);
});

test("the errors of servers have the codes of model files", async () => {
  vi.stubGlobal("fetch", async () => new Response("no", { status: 404 }));
  await expect(fetchBlob("https://example.org/a.png")).rejects.toMatchObject({ code: "source.status", details: { status: 404 } });
  vi.stubGlobal("fetch", () => Promise.reject(new TypeError("failed to fetch")));
  await expect(fetchBlob("https://example.org/a.png")).rejects.toMatchObject({
    code: "source.connection",
    message: "example.org could not be reached: failed to fetch. Check the address and the network connection.",
  });
  const signal = AbortSignal.abort("enough");
  await expect(fetchBlob("https://example.org/a.png", signal)).rejects.toMatchObject({ code: "cancelled", cause: "enough" });
  await expect(fetchBlob("data:;base64,???")).rejects.toMatchObject({ code: "chat.wrong_type" });
  await expect(fetchBlob("a.png")).rejects.toMatchObject({ code: "chat.wrong_type", message: "`a.png` is not a URL." });
});
