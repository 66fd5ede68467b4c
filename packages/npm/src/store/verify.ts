// Verifies a whole stored file, and downloads only the damaged ranges again.
//
// A block is compared with its original digest before it is written, so only the file that was stored can repair it.

import { Watch } from "../source/wire.js";
import { damagedBlocks, joined, rangeText } from "./blocks.js";
import { StoreError, cancelled } from "./error.js";
import type { ByteRange } from "./error.js";
import type { FileReading, FileWriter } from "./files.js";
import type { Origin, OriginReply } from "./origin.js";
import type { OnProgress } from "./progress.js";
import { ProgressMeter } from "./progress.js";
import type { StoreRecord } from "./record.js";
import { blockBytes } from "./record.js";

/** Reads the whole file and gives the damaged ranges, each at most one part long. */
export async function damagedRanges(
  file: FileReading, record: StoreRecord, signal: AbortSignal, onProgress?: OnProgress,
): Promise<ByteRange[]> {
  const meter = new ProgressMeter("verify", record.name, onProgress);
  const damaged: ByteRange[] = [];
  for (let at = 0; at < record.stored; at += record.partBytes) {
    if (signal.aborted) throw cancelled(`Verifying \`${record.name}\``);
    const end = Math.min(at + record.partBytes, record.stored);
    // A truncated file gives fewer bytes, which do not match the record.
    const bytes = await file.read(at, end - at);
    damaged.push(...joined(await damagedBlocks(record, bytes, at / blockBytes(record), Math.ceil(end / blockBytes(record))), record.partBytes));
    meter.at(end, record.stored);
  }
  if (signal.aborted) throw cancelled(`Verifying \`${record.name}\``);
  if (file.size > record.stored) damaged.push({ offset: record.stored, length: file.size - record.stored });
  return damaged;
}

/** Downloads a range of whole blocks again and writes it if it is correct. */
export async function repairRange(
  writer: FileWriter, record: StoreRecord, origin: Origin, range: ByteRange, stall: number, signal: AbortSignal,
): Promise<void> {
  // Bytes after the end never belonged to the file.
  if (range.offset >= record.stored) return writer.truncate(record.stored);
  const bytes = await fetchRange(record, origin, range, stall, signal);
  const [from, to] = [range.offset / blockBytes(record), Math.ceil((range.offset + range.length) / blockBytes(record))];
  if (bytes.length < range.length || (await damagedBlocks(record, bytes, from, to)).length > 0) {
    throw new StoreError("source.changed", `\`${record.name}\` has changed on its server, so ${rangeText(range)} cannot be repaired from it.`, { file: record.name });
  }
  await writer.write(bytes, range.offset);
  await writer.flush();
}

async function fetchRange(record: StoreRecord, origin: Origin, range: ByteRange, stall: number, signal: AbortSignal): Promise<Uint8Array> {
  const { name } = record;
  const watch = new Watch(stall, signal);
  try {
    const reply = await watch.race(origin.open(range.offset, record.validator, watch.signal, range.offset + range.length));
    if (reply.offset !== range.offset) {
      void reply.body.cancel().catch(() => {});
      throw new StoreError("source.range_ignored", `The server of \`${name}\` does not support Range requests, so the file cannot be repaired from it.`, { file: name });
    }
    return await readAll(reply, range.length, watch);
  } catch (cause) {
    if (signal.aborted) throw cancelled(`Repairing \`${name}\``);
    if (cause instanceof StoreError && !watch.silent) throw cause;
    const reason = watch.silent ?? cause;
    throw new StoreError("source.connection", `The connection broke while \`${name}\` was repaired: ${reason instanceof Error ? reason.message : String(reason)}`, { file: name }, { cause });
  } finally {
    watch.stop();
  }
}

async function readAll(reply: OriginReply, length: number, watch: Watch): Promise<Uint8Array> {
  const bytes = new Uint8Array(length);
  let filled = 0;
  const reader = reply.body.getReader();
  try {
    while (filled < length) {
      const { done, value } = await watch.race(reader.read());
      if (done) break;
      watch.alive();
      const piece = value.subarray(0, length - filled);
      bytes.set(piece, filled);
      filled += piece.length;
    }
    return bytes.subarray(0, filled);
  } finally {
    void reader.cancel().catch(() => {});
  }
}
