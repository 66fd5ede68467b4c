// Bytes in memory, or in a file that the user chose.

import { RullamaError } from "../errors.js";
import type { ByteSource } from "./types.js";

/** Refuses a range outside the source. */
export function checkRange(source: { name: string; length: number }, offset: number, length: number): void {
  if (!(offset >= 0 && length >= 0 && offset + length <= source.length)) {
    throw new RullamaError(
      "source.out_of_range",
      `Bytes ${offset} to ${offset + length} were requested, but \`${source.name}\` has ${source.length} bytes.`,
    );
  }
}

/** Bytes as a source, without a copy. */
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

/** A file or blob as a source. Only the ranges that are read are in memory. */
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
        // The file was changed or deleted after it was chosen.
        throw new RullamaError("source.io", `\`${name}\` cannot be read: ${String(cause)}. It may have been changed or moved; choose it again.`, { cause });
      }
      return new Uint8Array(buffer);
    },
  };
  return source;
}

/** The name of a blob in messages. */
export function nameOf(blob: Blob): string {
  return "name" in blob && typeof blob.name === "string" ? blob.name : "blob";
}
