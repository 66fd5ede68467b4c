// Checking stored bytes, block by block, against the digests that were taken when they came.
//
// WebCrypto digests a block many times as fast as a hash that can stop and go on (`sha256.ts`), and beside the thread that
// asks. So no byte of a stored file is given out that was not checked, and no file is read an extra time for that.

import { StoreError, bytesText } from "./error.js";
import type { ByteRange } from "./error.js";
import type { FileReading } from "./files.js";
import type { OnProgress } from "./progress.js";
import { ProgressMeter } from "./progress.js";
import type { StoreRecord } from "./record.js";
import { blockBytes } from "./record.js";
import { toHex } from "./sha256.js";

// Half a SHA-256: a disk's mistakes are found by far fewer bits, and a record has thousands of these.
const DIGEST_BYTES = 16;

export async function blockDigest(bytes: Uint8Array): Promise<string> {
  const digest = await crypto.subtle.digest("SHA-256", bytes as Uint8Array<ArrayBuffer>);
  return toHex(new Uint8Array(digest, 0, DIGEST_BYTES));
}

/** Which of the blocks `from` up to, but without, `to` are not what was stored; `bytes` start with the first of them. */
export async function damagedBlocks(record: StoreRecord, bytes: Uint8Array, from: number, to: number): Promise<ByteRange[]> {
  const size = blockBytes(record);
  const right = await Promise.all(
    Array.from({ length: to - from }, async (_, i) => (await blockDigest(bytes.subarray(i * size, (i + 1) * size))) === record.blocks[from + i]),
  );
  return right.flatMap((isRight, i) => (isRight ? [] : [blockRange(record, from + i)]));
}

/** A whole file, of which each block is checked when it is first read. */
export class CheckedFile {
  readonly #file: FileReading;
  readonly #record: StoreRecord;
  readonly #meter: ProgressMeter;
  readonly #checked: Uint8Array;
  #checkedBytes = 0;

  constructor(file: FileReading, record: StoreRecord, onProgress?: OnProgress) {
    this.#file = file;
    this.#record = record;
    this.#meter = new ProgressMeter("verify", record.name, onProgress);
    this.#checked = new Uint8Array(record.blocks.length);
  }

  async read(offset: number, length: number): Promise<Uint8Array> {
    if (length === 0) return new Uint8Array();
    const size = blockBytes(this.#record);
    const from = Math.floor(offset / size);
    const to = Math.ceil((offset + length) / size);
    // At either end as much more as it takes to check a block, where that has yet to be done.
    const start = this.#checked[from] ? offset : from * size;
    const end = this.#checked[to - 1] ? offset + length : Math.min(to * size, this.#record.stored);
    const bytes = await this.#file.read(start, end - start);
    if (bytes.length !== end - start) throw corrupt(this.#record.name, [{ offset: start + bytes.length, length: end - start - bytes.length }]);
    await this.#check(bytes, start, from, to);
    return bytes.subarray(offset - start, offset - start + length);
  }

  close(): void {
    this.#file.close();
  }

  /** Checks what is new of the blocks `from` up to `to`; `bytes` are those of the file from `start` on. */
  async #check(bytes: Uint8Array, start: number, from: number, to: number): Promise<void> {
    const record = this.#record;
    const fresh = Array.from({ length: to - from }, (_, i) => from + i).filter((block) => !this.#checked[block]);
    const found = await Promise.all(fresh.map((block) => {
      const at = block * blockBytes(record) - start;
      return damagedBlocks(record, bytes.subarray(at, at + blockBytes(record)), block, block + 1);
    }));
    const damaged = found.flat();
    if (damaged.length > 0) throw corrupt(record.name, joined(damaged, record.partBytes));
    for (const block of fresh) {
      // Another read may have been faster.
      if (!this.#checked[block]) this.#checkedBytes += blockRange(record, block).length;
      this.#checked[block] = 1;
    }
    if (fresh.length > 0) this.#meter.at(this.#checkedBytes, record.stored);
  }
}

/** Neighbours as one range, up to `most` bytes. */
export function joined(ranges: readonly ByteRange[], most: number): ByteRange[] {
  const result: ByteRange[] = [];
  for (const { offset, length } of ranges) {
    const last = result.at(-1);
    if (last && last.offset + last.length === offset && last.length + length <= most) last.length += length;
    else result.push({ offset, length });
  }
  return result;
}

export function corrupt(name: string, damaged: ByteRange[]): StoreError {
  const shown = damaged.slice(0, 4).map(rangeText).join(", ");
  const more = damaged.length > 4 ? ` and ${damaged.length - 4} more` : "";
  return new StoreError("storage.corrupt", `\`${name}\` is damaged on disk: ${shown}${more}. Repair it with \`verify(name, { repair: true })\`, or store it again.`, { file: name, damaged });
}

export function rangeText({ offset, length }: ByteRange): string {
  return `bytes ${offset} to ${offset + length} (${bytesText(length)})`;
}

function blockRange(record: StoreRecord, block: number): ByteRange {
  const size = blockBytes(record);
  return { offset: block * size, length: Math.min(size, record.stored - block * size) };
}
