// Refuses files that are not GGUF by their first bytes, before a large file is stored.

import { StoreError } from "./error.js";

/** The first bytes of every GGUF file. */
const MAGIC = "GGUF";
export const MAGIC_BYTES = MAGIC.length;

/** Other files that people pick or download by mistake, by their first bytes. */
const OTHERS: readonly [start: RegExp, what: string][] = [
  [/^<(!do|htm|\?xm|hea)/i, "a web page; if it was downloaded, the URL may be wrong or may need a login"],
  [/^%PDF/, "a PDF document"],
  [/^\x89PNG/, "a PNG image"],
  [/^\xff\xd8\xff/, "a JPEG image"],
  [/^PK\x03\x04/, "a ZIP archive"],
  [/^vers/, "a Git LFS pointer instead of the file itself"],
  [/^(ggml|ggmf|ggjt|lmgg|fmgg|tjgg)/, "a model in the older GGML format; convert it to GGUF first"],
];

/** Throws `gguf.not_gguf` unless a file starts as a GGUF file does. `start` is at least the first four bytes, or the whole file. */
export function checkGguf(name: string, start: Uint8Array): void {
  const text = String.fromCharCode(...start.subarray(0, MAGIC_BYTES));
  if (text === MAGIC) return;
  const found = OTHERS.find(([pattern]) => pattern.test(text));
  const what = text === "" ? "is empty" : found ? `is ${found[1]}` : `starts with ${JSON.stringify(text)} instead of "${MAGIC}"`;
  throw new StoreError("gguf.not_gguf", `This isn't a GGUF file: \`${name}\` ${what}.`, { file: name });
}
