// One stored file as it lies on disk: its bytes and the record beside them, found, described and removed together.

import { StoreError } from "./error.js";
import type { StoreFiles } from "./files.js";
import { filesOf, keyOf, nameOfKey } from "./names.js";
import { parseRecord } from "./record.js";
import type { StoreRecord } from "./record.js";
import type { StoredModel } from "./types.js";

export class Shelf {
  readonly #files: StoreFiles;

  constructor(files: StoreFiles) {
    this.#files = files;
  }

  async record(key: string): Promise<StoreRecord | undefined> {
    const text = await this.#files.readText(filesOf(key).record);
    return text === undefined ? undefined : parseRecord(text);
  }

  async write(key: string, record: StoreRecord): Promise<void> {
    await this.#files.writeText(filesOf(key).record, JSON.stringify(record));
  }

  /** The file that holds the bytes. A browser that cannot rename leaves a whole file under the name of a part. */
  async data(key: string): Promise<{ name: string; size: number } | undefined> {
    const { whole, part } = filesOf(key);
    for (const name of [whole, part]) {
      const size = await this.#files.size(name);
      if (size !== undefined) return { name, size };
    }
    return undefined;
  }

  /** The record and file of a model that is all there; throws `storage.missing` when it is not. */
  async complete(name: string): Promise<{ record: StoreRecord; data: string }> {
    const key = keyOf(name);
    const record = await this.record(key);
    const data = await this.data(key);
    if (!record || !data) throw new StoreError("storage.missing", `\`${name}\` is not stored`, { file: name });
    if (!record.complete) {
      const total = record.bytes === undefined ? "" : ` of ${record.bytes}`;
      throw new StoreError("storage.missing", `\`${name}\` is not complete: ${record.stored}${total} bytes are stored`, { file: name });
    }
    return { record, data: data.name };
  }

  async describe(key: string): Promise<StoredModel | undefined> {
    const record = await this.record(key);
    const data = await this.data(key);
    if (record) return describe(record, data?.size ?? 0);
    if (!data) return undefined;
    // Bytes whose record is lost: shown, so that they can be deleted.
    return { name: nameOfKey(key), bytes: data.size, storedBytes: data.size, complete: false, addedAt: 0, usedAt: 0 };
  }

  async touch(key: string): Promise<void> {
    const record = await this.record(key);
    if (!record) return;
    record.usedAt = Date.now();
    await this.write(key, record);
  }

  /** Data first: a record without data is seen for what it is, data without a record keeps its room. */
  async remove(key: string): Promise<void> {
    const { whole, part, record } = filesOf(key);
    await this.#files.remove(whole);
    await this.#files.remove(part);
    await this.#files.remove(record);
  }
}

export function describe(record: StoreRecord, size: number): StoredModel {
  return {
    name: record.name,
    bytes: record.bytes ?? 0,
    storedBytes: Math.min(record.stored, size),
    complete: record.complete && size === record.stored,
    ...(record.sha256 === undefined ? {} : { sha256: record.sha256 }),
    ...(record.proof === undefined ? {} : { proof: record.proof }),
    ...(record.url === undefined ? {} : { url: record.url }),
    addedAt: record.addedAt,
    usedAt: record.usedAt,
  };
}
