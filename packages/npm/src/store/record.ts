// The record beside each stored file: what it is, how much of it is there, and the hash state at every part.
//
// The record is the truth. Bytes past `stored` count as absent, a file is whole only when `complete` is set, and
// that happens after size and hash were checked. It is written after the bytes it speaks of were flushed, so a
// crash can lose the last second of a download and never invents any.

import type { Place } from "./names.js";
import { isState } from "./sha256.js";

/** Bytes of a part: the unit of flushing and of going back. */
export const PART_BYTES = 16 * 1024 * 1024;

/** Blocks of a part: the unit of finding damage, small because reading one byte means checking its block. */
const BLOCKS_IN_PART = 16;

/** What vouched for the bytes: a SHA-256 known beforehand, or the size alone. */
export type Proof = "sha256" | "size";

export interface StoreRecord {
  version: 2;
  name: string;
  /** Where the bytes come from; missing for imported files. */
  url?: string;
  /** Size of the whole file, once known. */
  bytes?: number;
  /** Bytes at the start of the file that are written, flushed and hashed. */
  stored: number;
  /** Of a complete file its digest; before that the digest it must have, where somebody says. */
  sha256?: string;
  /** What changes when the file at `url` changes: its ETag or date. */
  validator?: string;
  partBytes: number;
  /** Hash state at the end of each full part. */
  parts: string[];
  /** Digest of each full block, and of a complete file also of the shorter one at its end; see `blockDigest`. */
  blocks: string[];
  /** Hash state after `stored` bytes. */
  state?: string;
  complete: boolean;
  proof?: Proof;
  /** Where the bytes of a complete file lie. */
  place?: Place;
  addedAt: number;
  usedAt: number;
}

export function newRecord(name: string, now: number, partBytes: number): StoreRecord {
  return { version: 2, name, stored: 0, partBytes, parts: [], blocks: [], complete: false, addedAt: now, usedAt: now };
}

export function blockBytes(record: StoreRecord): number {
  return record.partBytes / BLOCKS_IN_PART;
}

/** Forgets all bytes, keeping what the file is. */
export function restart(record: StoreRecord): void {
  record.stored = 0;
  record.parts = [];
  record.blocks = [];
  record.complete = false;
  delete record.state;
  delete record.bytes;
  delete record.validator;
  delete record.proof;
}

/** Goes back to the last part that ends within `size` bytes. */
export function rollBack(record: StoreRecord, size: number): void {
  if (size >= record.stored) return;
  const parts = Math.floor(size / record.partBytes);
  record.parts.length = parts;
  record.blocks.length = parts * BLOCKS_IN_PART;
  record.stored = parts * record.partBytes;
  const state = record.parts[parts - 1];
  if (state === undefined) delete record.state;
  else record.state = state;
}

/** Reads a record; undefined when it is not one, and then what lies beside it is worth nothing. */
export function parseRecord(text: string): StoreRecord | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  const record = value as StoreRecord;
  const sound =
    typeof record === "object" && record !== null &&
    record.version === 2 &&
    typeof record.name === "string" &&
    optional(record.url, "string") &&
    optional(record.bytes, "number") &&
    optional(record.sha256, "string") &&
    optional(record.validator, "string") &&
    isCount(record.stored) &&
    isCount(record.partBytes) && record.partBytes > 0 && record.partBytes % (64 * BLOCKS_IN_PART) === 0 &&
    Array.isArray(record.parts) && record.parts.every((state) => isState(state, 0)) &&
    record.parts.length === Math.floor(record.stored / record.partBytes) &&
    (record.stored === 0 || isState(record.state, record.stored)) &&
    typeof record.complete === "boolean" &&
    (!record.complete || (record.bytes === record.stored && isDigest(record.sha256))) &&
    Array.isArray(record.blocks) && record.blocks.every((digest) => typeof digest === "string") &&
    record.blocks.length === blockCount(record) &&
    (record.place === undefined || record.place === "~2") &&
    isCount(record.addedAt) && isCount(record.usedAt);
  return sound ? record : undefined;
}

export function isDigest(text: unknown): text is string {
  return typeof text === "string" && /^[0-9a-f]{64}$/.test(text);
}

function blockCount(record: StoreRecord): number {
  const blocks = record.stored / blockBytes(record);
  return record.complete ? Math.ceil(blocks) : Math.floor(blocks);
}

function optional(value: unknown, type: string): boolean {
  return value === undefined || typeof value === type;
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}
