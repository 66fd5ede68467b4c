// A small model in memory.
//
// On the CPU, an engine reads the tables of a model row by row, for every token. From a server each row would be a request, and
// each tensor another. So a model that is small is read at once; of a large one only the rows are read that are needed.

import { RullamaError } from "../errors.js";
import { bytesSource } from "./memory.js";
import type { ByteSource } from "./types.js";

/** Models of no more bytes than this are held. */
const MOST = 256 << 20;

/** Bytes that are read at once: enough for speed, and few enough to show progress. */
const PIECE = 4 << 20;

/** The files of a model for the CPU: held in memory if all of them are small, otherwise as they are. */
export async function held(sources: readonly ByteSource[], signal: AbortSignal): Promise<ByteSource[]> {
  const bytes = sources.reduce((sum, { length }) => sum + length, 0);
  if (bytes > MOST) {
    return [...sources];
  }
  const inMemory: ByteSource[] = [];
  for (const source of sources) {
    inMemory.push(bytesSource(await whole(source, signal), source.name));
  }
  return inMemory;
}

async function whole(source: ByteSource, signal: AbortSignal): Promise<Uint8Array> {
  const bytes = new Uint8Array(source.length);
  for (let at = 0; at < bytes.length; at += PIECE) {
    if (signal.aborted) {
      throw RullamaError.cancelled();
    }
    bytes.set(await source.read(at, Math.min(PIECE, bytes.length - at)), at);
  }
  return bytes;
}
