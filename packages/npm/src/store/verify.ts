// Checking what is stored, and fetching again only what is damaged.
//
// The record holds the hash state at the end of every part. Each part is hashed from the recorded state before it
// and must arrive at the recorded state after it, so one pass over the file finds every damaged part, and a part
// fetched again is proved before it is written.

import { StoreError, bytesText, cancelled } from "./error.js";
import type { ByteRange } from "./error.js";
import type { FileReading, FileWriter } from "./files.js";
import type { Origin, OriginReply } from "./origin.js";
import type { OnProgress } from "./progress.js";
import { ProgressMeter } from "./progress.js";
import type { StoreRecord } from "./record.js";
import type { HashMaker, Hasher } from "./sha256.js";

const READ_BYTES = 1024 * 1024;

/** Reads the whole file and gives the parts that are not what was stored. */
export async function damagedParts(
  file: FileReading, record: StoreRecord, hash: HashMaker, signal: AbortSignal, onProgress?: OnProgress,
): Promise<ByteRange[]> {
  const meter = new ProgressMeter("verify", record.name, onProgress);
  const damaged: ByteRange[] = [];
  for (const range of partsOf(record)) {
    const hasher = hasherAt(record, hash, range.offset);
    let intact = true;
    for (let at = range.offset; at < range.offset + range.length; at += READ_BYTES) {
      if (signal.aborted) throw cancelled(`verifying \`${record.name}\``);
      const length = Math.min(READ_BYTES, range.offset + range.length - at);
      const bytes = await file.read(at, length);
      // A file cut short is damaged from here on.
      if (bytes.length !== length) intact = false;
      hasher.update(bytes);
      meter.at(at + length, record.stored);
    }
    if (!intact || !arrives(record, hasher, range)) damaged.push(range);
  }
  if (file.size > record.stored) damaged.push({ offset: record.stored, length: file.size - record.stored });
  return damaged;
}

/** Fetches one part again and writes it when it is right. */
export async function repairPart(
  writer: FileWriter, record: StoreRecord, hash: HashMaker, origin: Origin, range: ByteRange, signal: AbortSignal,
): Promise<void> {
  // What lies behind the end never belonged to the file.
  if (range.offset >= record.stored) return writer.truncate(record.stored);
  const reply = await origin.open(range.offset, record.validator, signal, range.offset + range.length);
  if (reply.offset !== range.offset) {
    await reply.body.cancel();
    throw new StoreError("network.range", `the server of \`${record.name}\` cannot give bytes from ${range.offset} on alone`, { file: record.name });
  }
  const part = await readPart(reply, range.length, record.name, signal);
  const hasher = hasherAt(record, hash, range.offset);
  hasher.update(part);
  if (part.length < range.length || !arrives(record, hasher, range)) {
    throw new StoreError("network.changed", `\`${record.name}\` is another file on its server now; ${rangeText(range)} cannot be repaired from it`, { file: record.name });
  }
  await writer.write(part, range.offset);
  await writer.flush();
}

async function readPart(reply: OriginReply, length: number, name: string, signal: AbortSignal): Promise<Uint8Array> {
  const part = new Uint8Array(length);
  let filled = 0;
  const reader = reply.body.getReader();
  try {
    while (filled < length) {
      const { done, value } = await reader.read();
      if (done) break;
      const piece = value.subarray(0, length - filled);
      part.set(piece, filled);
      filled += piece.length;
    }
    await reader.cancel();
  } catch (cause) {
    if (signal.aborted) throw cancelled(`repairing \`${name}\``);
    throw new StoreError("network.failed", `the connection broke while \`${name}\` was repaired`, { file: name }, { cause });
  }
  return part.subarray(0, filled);
}

export function corrupt(name: string, damaged: ByteRange[]): StoreError {
  const shown = damaged.slice(0, 4).map(rangeText).join(", ");
  const more = damaged.length > 4 ? ` and ${damaged.length - 4} more` : "";
  return new StoreError("storage.corrupt", `\`${name}\` is damaged on disk in ${shown}${more}`, { file: name, damaged });
}

function partsOf(record: StoreRecord): ByteRange[] {
  const ranges: ByteRange[] = [];
  for (let offset = 0; offset < record.stored; offset += record.partBytes) {
    ranges.push({ offset, length: Math.min(record.partBytes, record.stored - offset) });
  }
  return ranges;
}

function hasherAt(record: StoreRecord, hash: HashMaker, offset: number): Hasher {
  return offset === 0 ? hash.start() : hash.resume(record.parts[offset / record.partBytes - 1]!, offset);
}

function arrives(record: StoreRecord, hasher: Hasher, range: ByteRange): boolean {
  const after = record.parts[range.offset / record.partBytes];
  return range.length === record.partBytes ? hasher.state() === after : hasher.hex() === record.sha256;
}

function rangeText({ offset, length }: ByteRange): string {
  return `bytes ${offset} to ${offset + length} (${bytesText(length)})`;
}
