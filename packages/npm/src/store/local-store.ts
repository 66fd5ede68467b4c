// The store itself, over any files and locks. It runs where the files can be written: in a dedicated worker.
//
// Each stored file has one lock, shared by all tabs. Writing holds it alone, reading shares it. A second tab that
// wants a file which is being fetched waits for the lock, shows the other's progress meanwhile, and then finds the
// file complete, or goes on itself where the other stopped.

import type { ByteSource } from "../source/types.js";
import { checkRange } from "../source/memory.js";
import { Watch, discard } from "../source/wire.js";
import { CheckedFile, corrupt } from "./blocks.js";
import { StoreError, cancelled, hasCode } from "./error.js";
import type { ByteRange } from "./error.js";
import type { FileReading, StoreFiles, StoreSpace } from "./files.js";
import { HttpOrigin } from "./http-origin.js";
import { takeSoon } from "./locks.js";
import type { Release, StoreLocks } from "./locks.js";
import { filesBeside, filesOf, keyOf, keysIn, longNameOfUrl, nameOfUrl, sameFile } from "./names.js";
import type { FileNames } from "./names.js";
import { describesOne, digestOption } from "./options.js";
import type { Origin } from "./origin.js";
import { BlobOrigin } from "./origin.js";
import type { OnProgress } from "./progress.js";
import { ProgressMeter } from "./progress.js";
import { PART_BYTES, newRecord, restart } from "./record.js";
import type { StoreRecord } from "./record.js";
import { Shelf, describe, writeRecord } from "./shelf.js";
import type { Stored } from "./shelf.js";
import { PATIENT, transfer } from "./transfer.js";
import type { TransferPolicy } from "./transfer.js";
import type { DownloadOptions, ImportOptions, ModelStore, SourceOptions, StoredModel, Verification, VerifyOptions } from "./types.js";
import { damagedRanges, repairRange } from "./verify.js";

export interface LocalStoreOptions {
  files: StoreFiles;
  locks: StoreLocks;
  /** Tells stores in different folders apart where they share locks. */
  folder?: string;
  fetch?: typeof fetch;
  policy?: Partial<TransferPolicy>;
  partBytes?: number;
}

interface Wanted {
  name: string;
  origin: Origin;
  expected: { sha256?: string; bytes?: number };
  replace: boolean;
  signal: AbortSignal;
  onProgress: OnProgress | undefined;
}

const LOOK_EVERY = 250;

export class LocalModelStore implements ModelStore {
  readonly #files: StoreFiles;
  readonly #shelf: Shelf;
  readonly #locks: StoreLocks;
  readonly #options: LocalStoreOptions;

  constructor(options: LocalStoreOptions) {
    this.#files = options.files;
    this.#shelf = new Shelf(options.files);
    this.#locks = options.locks;
    this.#options = options;
  }

  async list(): Promise<StoredModel[]> {
    const models: StoredModel[] = [];
    for (const key of keysIn(await this.#files.list())) {
      const model = await this.#shelf.describe(key);
      if (model) models.push(model);
    }
    return models.sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  download(url: string | URL, options?: DownloadOptions): Promise<StoredModel>;
  download(urls: readonly (string | URL)[], options?: DownloadOptions): Promise<StoredModel[]>;
  async download(urls: string | URL | readonly (string | URL)[], options: DownloadOptions = {}): Promise<StoredModel | StoredModel[]> {
    if (typeof urls === "string" || urls instanceof URL) return this.#downloadOne(String(urls), options);
    describesOne(urls, options);
    const models: StoredModel[] = [];
    for (const url of urls) models.push(await this.#downloadOne(String(url), options));
    return models;
  }

  async import(blob: Blob, options: ImportOptions = {}): Promise<StoredModel> {
    const name = options.name ?? (blob as Partial<File>).name;
    if (!name) throw new StoreError("option.wrong_type", "a blob without a name needs the option `name`");
    try {
      return await this.#store({
        name,
        origin: new BlobOrigin(blob),
        expected: { ...digestOption(options.sha256), bytes: blob.size },
        replace: options.replace ?? false,
        signal: options.signal ?? never(),
        onProgress: options.onProgress,
      });
    } catch (cause) {
      if (!hasCode(cause, "source.connection")) throw cause;
      throw new StoreError("source.io", `the file to import as \`${name}\` cannot be read any more: ${(cause as Error).message}`, { file: name }, { cause });
    }
  }

  async source(name: string, { onProgress }: SourceOptions = {}): Promise<ByteSource> {
    const { record, file, release } = await this.#openComplete(name);
    const checked = new CheckedFile(file, record, onProgress);
    // When it was used last is a convenience, and no reason to fail.
    await this.#shelf.touch(keyOf(name)).catch(() => {});
    let open = true;
    const source: ByteSource = {
      name,
      length: record.stored,
      async read(offset, length) {
        if (!open) throw new StoreError("storage.missing", `\`${name}\` was closed`, { file: name });
        checkRange(source, offset, length);
        return checked.read(offset, length);
      },
      close() {
        if (!open) return;
        open = false;
        checked.close();
        release();
      },
    };
    return source;
  }

  async verify(name: string, options: VerifyOptions = {}): Promise<Verification> {
    const signal = options.signal ?? never();
    const { record, file, release } = await this.#openComplete(name, { anySize: true });
    let damaged: ByteRange[];
    try {
      damaged = await damagedRanges(file, record, signal, options.onProgress);
    } finally {
      file.close();
      release();
    }
    if (damaged.length > 0) await this.#repair(name, damaged, options, signal);
    return { name, bytes: record.stored, sha256: record.sha256!, repaired: damaged };
  }

  async export(name: string): Promise<File> {
    const { record, data } = await this.#shelf.complete(name);
    const file = await this.#files.file(data);
    if (file.size !== record.stored) throw corrupt(name, [sizeGap(file.size, record.stored)]);
    return new File([file], name.split("/").pop() || name, { lastModified: record.addedAt });
  }

  async delete(name: string): Promise<void> {
    const key = keyOf(name);
    const release = await takeSoon(this.#locks, this.#lockOf(key), "exclusive");
    if (!release) throw new StoreError("storage.busy", `\`${name}\` is being read or written, here or in another tab`, { file: name });
    try {
      await this.#shelf.remove(key);
    } finally {
      release();
    }
  }

  estimate(): Promise<StoreSpace> {
    return this.#files.space();
  }

  close(): void {}

  async #downloadOne(url: string, options: DownloadOptions): Promise<StoredModel> {
    const expected = { ...digestOption(options.sha256), ...(options.bytes === undefined ? {} : { bytes: options.bytes }) };
    return this.#store({
      name: options.name ?? (await this.#nameFor(url, expected.sha256)),
      origin: this.#origin(url, options),
      expected,
      replace: options.replace ?? false,
      signal: options.signal ?? never(),
      onProgress: options.onProgress,
    });
  }

  /** The name that an address gives, or a longer one where that of a file from elsewhere is the same. */
  async #nameFor(url: string, sha256: string | undefined): Promise<string> {
    const name = nameOfUrl(url);
    const record = await this.#shelf.record(keyOf(name));
    const free = !record || (record.url !== undefined && sameFile(record.url, url)) || (sha256 !== undefined && sha256 === record.sha256);
    return free ? name : longNameOfUrl(url);
  }

  async #store(wanted: Wanted): Promise<StoredModel> {
    const key = keyOf(wanted.name);
    const there = await this.#alreadyThere(key, wanted);
    if (there) return there;
    const before = await this.#toReplace(key, wanted);
    // Asked without the lock: whoever reads the file need not stop for one that stays.
    if (before && (await this.#isCurrent(before.record, wanted))) return this.#found(before, wanted);
    const release = await this.#waitToWrite(key, wanted);
    try {
      // Whoever held the lock may have finished the work.
      const finished = await this.#alreadyThere(key, wanted);
      if (finished) return finished;
      const old = await this.#toReplace(key, wanted);
      const isNew = old !== undefined && old.record.sha256 !== before?.record.sha256;
      if (isNew && (await this.#isCurrent(old.record, wanted))) return this.#found(old, wanted);
      return await this.#fetch(key, wanted, old);
    } finally {
      release();
    }
  }

  /** Stores what is wanted; in the stead of `old`, which stays until the new file is whole. */
  async #fetch(key: string, wanted: Wanted, old: Stored | undefined): Promise<StoredModel> {
    const names = old ? filesBeside(key, old.record.place) : filesOf(key);
    const record = await this.#recordFor(key, names, wanted);
    try {
      if (wanted.signal.aborted) throw cancelled(`storing \`${wanted.name}\``);
      await transfer({
        files: this.#files,
        names,
        record,
        origin: wanted.origin,
        expected: wanted.expected,
        ...(old ? { kept: old.size } : {}),
        policy: this.#policy,
        signal: wanted.signal,
        ...(wanted.onProgress ? { onProgress: wanted.onProgress } : {}),
      });
    } catch (error) {
      // Nothing to resume: leave nothing behind.
      if (record.stored === 0) await this.#shelf.removeAt(names);
      throw error;
    }
    if (old) await this.#shelf.replace(key, record, names);
    return describe(record, record.stored);
  }

  async #alreadyThere(key: string, wanted: Wanted): Promise<StoredModel | undefined> {
    const stored = await this.#shelf.whole(key);
    if (!stored) return undefined;
    const { record } = stored;
    const { sha256, bytes } = wanted.expected;
    const { url } = wanted.origin;
    const sameBytes = bytes === undefined || bytes === record.bytes;
    if (sha256 !== undefined && sha256 === record.sha256 && sameBytes) return this.#found(stored, wanted);
    if (wanted.replace) return undefined;
    if (sha256 === undefined && url !== undefined && url === record.url && sameBytes) return this.#found(stored, wanted);
    throw new StoreError(
      "storage.exists",
      `\`${record.name}\` is already stored${record.url ? ` from ${record.url}` : ""}; another file needs another name by the option \`name\`, or the option \`replace\``,
      { file: record.name },
    );
  }

  async #toReplace(key: string, { replace }: Wanted): Promise<Stored | undefined> {
    return replace ? this.#shelf.whole(key) : undefined;
  }

  #found({ record, size }: Stored, wanted: Wanted): StoredModel {
    new ProgressMeter("download", record.name, wanted.onProgress).at(size, size);
    return describe(record, size);
  }

  /** Whether the file at the address is, by what its server says, still the one that is stored. */
  async #isCurrent(record: StoreRecord, { origin, expected, signal }: Wanted): Promise<boolean> {
    if (origin.url === undefined || origin.url !== record.url || record.validator === undefined) return false;
    // A file that must have another digest or size than the stored one.
    if (expected.sha256 !== undefined || (expected.bytes !== undefined && expected.bytes !== record.bytes)) return false;
    const watch = new Watch(this.#policy.stall, signal);
    try {
      const reply = await watch.race(origin.open(0, undefined, watch.signal, 2));
      void discard(reply);
      return reply.validator === record.validator && (reply.bytes === undefined || reply.bytes === record.bytes);
    } catch {
      // Fetching it will find out what is the matter, with more patience.
      return false;
    } finally {
      watch.end();
    }
  }

  async #waitToWrite(key: string, wanted: Wanted): Promise<Release> {
    const lock = this.#lockOf(key);
    const now = await this.#locks.attempt(lock, "exclusive");
    if (now) return now;
    const meter = new ProgressMeter("download", wanted.name, wanted.onProgress);
    const look = setInterval(() => {
      void this.#shelf.writing(key).then((record) => record && meter.at(record.stored, record.bytes)).catch(() => {});
    }, LOOK_EVERY);
    try {
      return await this.#locks.wait(lock, "exclusive", wanted.signal);
    } finally {
      clearInterval(look);
    }
  }

  /** The record to go on with: what is stored of this very file, or a fresh start. */
  async #recordFor(key: string, names: FileNames, wanted: Wanted): Promise<StoreRecord> {
    const { expected, origin } = wanted;
    const fresh = newRecord(wanted.name, Date.now(), this.#options.partBytes ?? PART_BYTES);
    let record = await this.#shelf.recordAt(names.record);
    if (!record || record.complete) {
      // A whole file that lost bytes, or one whose record did: of no use.
      if (names.record === filesOf(key).record) await this.#shelf.remove(key);
      else await this.#shelf.removeAt(names);
      record = fresh;
    }
    const sameBytes = expected.bytes === undefined || record.bytes === undefined || expected.bytes === record.bytes;
    const sameHash = expected.sha256 !== undefined && expected.sha256 === record.sha256;
    const otherHash = expected.sha256 !== undefined && record.sha256 !== undefined && !sameHash;
    const sameOrigin = record.url === origin.url;
    // From another address only the same digest shows that it is the same file.
    if (!sameBytes || otherHash || !(sameOrigin || sameHash)) restart(record);
    if (!sameOrigin) delete record.validator;
    if (origin.url === undefined) delete record.url;
    else record.url = origin.url;
    if (expected.sha256 !== undefined) record.sha256 = expected.sha256;
    else if (record.stored === 0) delete record.sha256;
    // Bytes about to be overwritten must not be vouched for any more.
    await writeRecord(this.#files, names.record, record);
    return record;
  }

  async #repair(name: string, damaged: ByteRange[], options: VerifyOptions, signal: AbortSignal): Promise<void> {
    if (!options.repair) throw corrupt(name, damaged);
    const release = await takeSoon(this.#locks, this.#lockOf(keyOf(name)), "exclusive");
    if (!release) throw new StoreError("storage.busy", `\`${name}\` is damaged and cannot be repaired while it is read, here or in another tab`, { file: name, damaged });
    try {
      const { record, data } = await this.#shelf.complete(name);
      if (record.url === undefined) throw corrupt(name, damaged);
      const origin = this.#origin(record.url, options);
      const writer = await this.#files.openWrite(data);
      try {
        for (const range of damaged) await repairRange(writer, record, origin, range, this.#policy.stall, signal);
      } finally {
        await writer.close();
      }
    } finally {
      release();
    }
  }

  get #policy(): TransferPolicy {
    return { ...PATIENT, ...this.#options.policy };
  }

  #origin(url: string, { headers }: { headers?: HeadersInit }): HttpOrigin {
    const { fetch } = this.#options;
    return new HttpOrigin(url, { ...(headers === undefined ? {} : { headers }), ...(fetch === undefined ? {} : { fetch }) });
  }

  async #openComplete(name: string, { anySize = false } = {}): Promise<{ record: StoreRecord; file: FileReading; release: Release }> {
    const release = await takeSoon(this.#locks, this.#lockOf(keyOf(name)), "shared");
    if (!release) throw new StoreError("storage.busy", `\`${name}\` is being written, here or in another tab`, { file: name });
    try {
      const { record, data } = await this.#shelf.complete(name);
      const file = await this.#files.openRead(data);
      if (!anySize && file.size !== record.stored) {
        file.close();
        throw corrupt(name, [sizeGap(file.size, record.stored)]);
      }
      return { record, file, release };
    } catch (error) {
      release();
      throw error;
    }
  }

  #lockOf(key: string): string {
    return `rullama-store/${this.#options.folder ?? ""}/${key}`;
  }
}

function sizeGap(found: number, expected: number): ByteRange {
  return { offset: Math.min(found, expected), length: Math.abs(found - expected) };
}

function never(): AbortSignal {
  return new AbortController().signal;
}
