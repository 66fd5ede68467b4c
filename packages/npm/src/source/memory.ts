// Bytes that are in memory already, or in a file that somebody chose.

import { RullamaError } from "../errors.js";
import type { ByteSource } from "./types.js";

/** Refuses a range that the source does not have. */
export function checkRange(source: { name: string; length: number }, offset: number, length: number): void {
  if (!(offset >= 0 && length >= 0 && offset + length <= source.length)) {
    throw new RullamaError(
      "source.out_of_range",
      `bytes ${offset}..${offset + length} were asked for; \`${source.name}\` has ${source.length}`,
    );
  }
}

/** Bytes as a source. They are not copied. */
export function bytesSource(bytes: Uint8Array, name = "memory"): ByteSource {
  const source: ByteSource = {
    name,
    length: bytes.byteLength,
    async read(offset, length) {
      checkRange(source, offset, length);
      return bytes.subarray(offset, offset + length);
    },
  };
  return source;
}

/** A file or blob as a source: only what is read is in memory. */
export function blobSource(blob: Blob, name = nameOf(blob)): ByteSource {
  const source: ByteSource = {
    name,
    length: blob.size,
    async read(offset, length) {
      checkRange(source, offset, length);
      let buffer: ArrayBuffer;
      try {
        buffer = await blob.slice(offset, offset + length).arrayBuffer();
      } catch (cause) {
        // The file changed or went away since it was chosen.
        throw new RullamaError("source.io", `\`${name}\` cannot be read: ${String(cause)}`, { cause });
      }
      return new Uint8Array(buffer);
    },
  };
  return source;
}

/** What messages call a blob. */
export function nameOf(blob: Blob): string {
  return "name" in blob && typeof blob.name === "string" ? blob.name : "blob";
}
