// Formats of image and sound files, recognised by their first bytes, so that errors can tell damaged files from others.

/** A format: bytes that its files have at a place near their beginning. */
type Format = readonly [name: string, at: number, bytes: string];

const IMAGES: readonly Format[] = [
  ["PNG", 0, "\x89PNG"],
  ["JPEG", 0, "\xff\xd8\xff"],
  ["GIF", 0, "GIF8"],
  ["BMP", 0, "BM"],
  ["WebP", 8, "WEBP"],
  ["AVIF", 4, "ftypavif"],
  ["HEIC", 4, "ftyphei"],
  ["HEIC", 4, "ftypmif1"],
  ["TIFF", 0, "II*\0"],
  ["TIFF", 0, "MM\0*"],
  ["SVG", 0, "<svg"],
];

const SOUNDS: readonly Format[] = [
  ["WAV", 8, "WAVE"],
  ["MP3", 0, "ID3"],
  ["MP3", 0, "\xff\xfb"],
  ["MP3", 0, "\xff\xf3"],
  ["MP3", 0, "\xff\xf2"],
  ["FLAC", 0, "fLaC"],
  ["Ogg", 0, "OggS"],
  ["MP4", 4, "ftyp"],
  ["WebM", 0, "\x1a\x45\xdf\xa3"],
  ["AIFF", 8, "AIFF"],
];

/** Formats of images that every browser reads. */
export const READ_EVERYWHERE: readonly string[] = ["PNG", "JPEG", "GIF", "BMP", "WebP"];

/** The name of a file's format, if it is known. */
export async function formatOf(medium: "image" | "audio", file: Blob): Promise<string | undefined> {
  const bytes = new Uint8Array(await file.slice(0, 16).arrayBuffer());
  const start = String.fromCharCode(...bytes);
  return (medium === "image" ? IMAGES : SOUNDS).find(([, at, text]) => start.startsWith(text, at))?.[0];
}
