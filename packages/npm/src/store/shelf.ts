// One stored file as it lies on disk: its bytes and the record beside them, found, described and removed together.

import { StoreError, hasCode, quota } from "./error.js";
import type { StoreFiles } from "./files.js";
import { PLACES, filesBeside, filesOf, keyOf, nameOfKey } from "./names.js";
import type { FileNames } from "./names.js";
import { parseRecord } from "./record.js";
import type { StoreRecord } from "./record.js";
import type { StoredModel } from "./types.js";

export interface Stored { record: StoreRecord; data: string; size: number }

export class Shelf {
  readonly #files: StoreFiles;

  constructor(files: StoreFiles) {
    this.#files = files;
  }

  async record(key: string): Promise<StoreRecord | undefined> {
    return this.recordAt(filesOf(key).record);
  }

  async recordAt(file: string): Promise<StoreRecord | undefined> {
    const text = await this.#files.readText(file);
    return text === undefined ? undefined : parseRecord(text);
  }

  /** The record of the file that is being written, here or in another tab. */
  async writing(key: string): Promise<StoreRecord | undefined> {
    return (await this.recordAt(filesBeside(key).record)) ?? (await this.record(key));
  }

  async write(key: string, record: StoreRecord): Promise<void> {
    await writeRecord(this.#files, filesOf(key).record, record);
  }

  /** The file with the bytes. In a browser that cannot rename files, a complete file keeps the name of an incomplete one. */
  async data(key: string, record: StoreRecord | undefined): Promise<{ name: string; size: number } | undefined> {
    for (const place of record ? [record.place ?? ""] : PLACES) {
      const { whole, part } = filesOf(key, place);
      for (const name of [whole, part]) {
        const size = await this.#files.size(name);
        if (size !== undefined) return { name, size };
      }
    }
    return undefined;
  }

  /** A complete file; undefined if there is none. */
  async whole(key: string): Promise<Stored | undefined> {
    const record = await this.record(key);
    const data = record?.complete ? await this.data(key, record) : undefined;
    return record && data && data.size === record.stored ? { record, data: data.name, size: data.size } : undefined;
  }

  /** The record and data of a file that was completed; throws `storage.missing` if there is none. */
  async complete(name: string): Promise<{ record: StoreRecord; data: string }> {
    const key = keyOf(name);
    const record = await this.record(key);
    const data = await this.data(key, record);
    if (!record || !data) throw new StoreError("storage.missing", `\`${name}\` is not stored.`, { file: name });
    if (!record.complete) {
      const total = record.bytes === undefined ? "" : ` of ${record.bytes}`;
      throw new StoreError("storage.missing", `\`${name}\` is not complete: ${record.stored}${total} bytes are stored.`, { file: name });
    }
    return { record, data: data.name };
  }

  async describe(key: string): Promise<StoredModel | undefined> {
    const record = await this.record(key);
    const data = await this.data(key, record);
    if (record) return describe(record, data?.size ?? 0);
    if (!data) return undefined;
    // Bytes without a record are listed so that they can be deleted.
    return { name: nameOfKey(key), bytes: data.size, storedBytes: data.size, complete: false, addedAt: 0, usedAt: 0 };
  }

  async touch(key: string): Promise<void> {
    const record = await this.record(key);
    if (!record) return;
    record.usedAt = Date.now();
    await this.write(key, record);
  }

  /** Deletes the data first: a record without data is harmless, data without a record would take space. */
  async remove(key: string): Promise<void> {
    for (const place of PLACES) await this.#removeData(filesOf(key, place));
    await this.#files.remove(filesOf(key).record);
    await this.#files.remove(filesBeside(key).record);
  }

  /** Removes one set of files, and its record. */
  async removeAt(names: FileNames): Promise<void> {
    await this.#removeData(names);
    await this.#files.remove(names.record);
  }

  /** Makes the complete file at `names` the stored one, in place of the old file. */
  async replace(key: string, record: StoreRecord, names: FileNames): Promise<void> {
    const { place: _, ...rest } = record;
    // This one write makes the change. Files that a crash leaves behind are removed with the next replacement or deletion.
    await this.write(key, names.place === "" ? rest : { ...rest, place: names.place });
    const old = filesBeside(key, names.place);
    await this.#removeData(old);
    await this.#files.remove(old.record);
  }

  async #removeData({ whole, part }: FileNames): Promise<void> {
    await this.#files.remove(whole);
    await this.#files.remove(part);
  }
}

/** Writes a record. If even that does not fit, the error counts the rest of the file as needed, too. */
export async function writeRecord(files: StoreFiles, file: string, record: StoreRecord): Promise<void> {
  const text = JSON.stringify(record);
  try {
    await files.writeText(file, text);
  } catch (error) {
    if (!hasCode(error, "storage.quota")) throw error;
    const needed = text.length + (record.bytes ?? record.stored) - record.stored;
    throw quota(record.name, needed, (await files.space()).free, { cause: error });
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
