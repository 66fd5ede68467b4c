// The store itself, over any files and locks. It runs where the files can be written: in a dedicated worker.
//
// Each stored file has one lock, shared by all tabs. Writing holds it alone, reading shares it. A second tab that
// wants a file which is being fetched waits for the lock, shows the other's progress meanwhile, and then finds the
// file complete, or goes on itself where the other stopped.

import type { ByteSource } from "../source/types.js";
import { StoreError, cancelled, hasCode } from "./error.js";
import type { ByteRange } from "./error.js";
import type { FileReading, StoreFiles, StoreSpace } from "./files.js";
import { HttpOrigin } from "./http-origin.js";
import { takeSoon } from "./locks.js";
import type { Release, StoreLocks } from "./locks.js";
import { keyOf, keysIn, nameOfUrl } from "./names.js";
import type { Origin } from "./origin.js";
import { BlobOrigin } from "./origin.js";
import type { OnProgress } from "./progress.js";
import { ProgressMeter } from "./progress.js";
import { PART_BYTES, isDigest, newRecord, restart } from "./record.js";
import type { StoreRecord } from "./record.js";
import { sha256 as defaultHash } from "./sha256.js";
import type { HashMaker } from "./sha256.js";
import { Shelf, describe } from "./shelf.js";
import { PATIENT, transfer } from "./transfer.js";
import type { TransferPolicy } from "./transfer.js";
import type { DownloadOptions, ImportOptions, ModelStore, StoredModel, Verification, VerifyOptions } from "./types.js";
import { corrupt, damagedParts, repairPart } from "./verify.js";

export interface LocalStoreOptions {
  files: StoreFiles;
  locks: StoreLocks;
  /** Tells stores in different folders apart where they share locks. */
  folder?: string;
  hash?: HashMaker;
  fetch?: typeof fetch;
  policy?: Partial<TransferPolicy>;
  partBytes?: number;
}

interface Wanted {
  name: string;
  origin: Origin;
  expected: { sha256?: string; bytes?: number };
  replace: boolean;
  /** Forget a digest that an earlier attempt took from the server. */
  distrust: boolean;
  signal: AbortSignal;
  onProgress: OnProgress | undefined;
}

const LOOK_EVERY = 250;

export class LocalModelStore implements ModelStore {
  readonly #files: StoreFiles;
  readonly #shelf: Shelf;
  readonly #locks: StoreLocks;
  readonly #options: LocalStoreOptions;
  readonly #hash: HashMaker;

  constructor(options: LocalStoreOptions) {
    this.#files = options.files;
    this.#shelf = new Shelf(options.files);
    this.#locks = options.locks;
    this.#options = options;
    this.#hash = options.hash ?? defaultHash;
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
    if (urls.length !== 1 && (options.name ?? options.sha256 ?? options.bytes) !== undefined) {
      throw new TypeError("`name`, `sha256` and `bytes` describe one file; several addresses were given");
    }
    const models: StoredModel[] = [];
    for (const url of urls) models.push(await this.#downloadOne(String(url), options));
    return models;
  }

  async import(blob: Blob, options: ImportOptions = {}): Promise<StoredModel> {
    const name = options.name ?? (blob as Partial<File>).name;
    if (!name) throw new TypeError("a blob without a name needs the option `name`");
    try {
      return await this.#store({
        name,
        origin: new BlobOrigin(blob),
        expected: { ...digestOption(options.sha256), bytes: blob.size },
        replace: options.replace ?? false,
        distrust: false,
        signal: options.signal ?? never(),
        onProgress: options.onProgress,
      });
    } catch (cause) {
      if (!hasCode(cause, "network.failed")) throw cause;
      throw new StoreError("storage.missing", `the file to import as \`${name}\` cannot be read any more: ${(cause as Error).message}`, { file: name }, { cause });
    }
  }

  async source(name: string): Promise<ByteSource> {
    const { record, file, release } = await this.#openComplete(name);
    // When it was used last is a convenience, and no reason to fail.
    await this.#shelf.touch(keyOf(name)).catch(() => {});
    let open = true;
    return {
      name,
      length: record.stored,
      async read(offset, length) {
        if (!open) throw new StoreError("storage.missing", `\`${name}\` was closed`, { file: name });
        if (offset < 0 || length < 0 || offset + length > record.stored) {
          throw new RangeError(`bytes ${offset} to ${offset + length} of \`${name}\`, which has ${record.stored}`);
        }
        const bytes = await file.read(offset, length);
        if (bytes.length !== length) throw corrupt(name, [{ offset: offset + bytes.length, length: length - bytes.length }]);
        return bytes;
      },
      close() {
        if (!open) return;
        open = false;
        file.close();
        release();
      },
    };
  }

  async verify(name: string, options: VerifyOptions = {}): Promise<Verification> {
    const signal = options.signal ?? never();
    const { record, file, release } = await this.#openComplete(name, { anySize: true });
    let damaged: ByteRange[];
    try {
      damaged = await damagedParts(file, record, this.#hash, signal, options.onProgress);
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

  #downloadOne(url: string, options: DownloadOptions): Promise<StoredModel> {
    return this.#store({
      name: options.name ?? nameOfUrl(url),
      origin: this.#origin(url, options),
      expected: { ...digestOption(options.sha256), ...(options.bytes === undefined ? {} : { bytes: options.bytes }) },
      replace: options.replace ?? false,
      distrust: options.etagIsHash === false,
      signal: options.signal ?? never(),
      onProgress: options.onProgress,
    });
  }

  async #store(wanted: Wanted): Promise<StoredModel> {
    const key = keyOf(wanted.name);
    const there = await this.#alreadyThere(key, wanted);
    if (there) return there;
    const release = await this.#waitToWrite(key, wanted);
    try {
      // Whoever held the lock may have finished the work.
      const finished = await this.#alreadyThere(key, wanted);
      if (finished) return finished;
      const record = await this.#recordFor(key, wanted);
      try {
        if (wanted.signal.aborted) throw cancelled(`storing \`${wanted.name}\``);
        await transfer({
          files: this.#files,
          hash: this.#hash,
          key,
          record,
          origin: wanted.origin,
          expected: wanted.expected,
          policy: { ...PATIENT, ...this.#options.policy },
          signal: wanted.signal,
          ...(wanted.onProgress ? { onProgress: wanted.onProgress } : {}),
        });
      } catch (error) {
        // Nothing to resume: leave nothing behind.
        if (record.stored === 0) await this.#shelf.remove(key);
        throw error;
      }
      return describe(record, record.stored);
    } finally {
      release();
    }
  }

  async #alreadyThere(key: string, wanted: Wanted): Promise<StoredModel | undefined> {
    const record = await this.#shelf.record(key);
    if (!record?.complete || wanted.replace) return undefined;
    const data = await this.#shelf.data(key);
    if (!data || data.size !== record.stored) return undefined;
    const { sha256, bytes } = wanted.expected;
    const same = sha256 !== undefined ? sha256 === record.sha256 : wanted.origin.url !== undefined && wanted.origin.url === record.url;
    if (same && (bytes === undefined || bytes === record.bytes)) {
      new ProgressMeter("download", record.name, wanted.onProgress).at(record.stored, record.stored);
      return describe(record, data.size);
    }
    throw new StoreError(
      "storage.exists",
      `\`${record.name}\` is already stored${record.url ? ` from ${record.url}` : ""}; another file needs another name, or the option \`replace\``,
      { file: record.name },
    );
  }

  async #waitToWrite(key: string, wanted: Wanted): Promise<Release> {
    const lock = this.#lockOf(key);
    const now = await this.#locks.attempt(lock, "exclusive");
    if (now) return now;
    const meter = new ProgressMeter("download", wanted.name, wanted.onProgress);
    const look = setInterval(() => {
      void this.#shelf.record(key).then((record) => record && meter.at(record.stored, record.bytes)).catch(() => {});
    }, LOOK_EVERY);
    try {
      return await this.#locks.wait(lock, "exclusive", wanted.signal);
    } finally {
      clearInterval(look);
    }
  }

  /** The record to go on with: what is stored of this very file, or a fresh start. */
  async #recordFor(key: string, wanted: Wanted): Promise<StoreRecord> {
    const { expected, origin } = wanted;
    const fresh = newRecord(wanted.name, Date.now(), this.#options.partBytes ?? PART_BYTES);
    let record = await this.#shelf.record(key);
    if (!record || record.complete || wanted.replace) {
      await this.#shelf.remove(key);
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
    else if (wanted.distrust || record.stored === 0) delete record.sha256;
    // Bytes about to be overwritten must not be vouched for any more.
    await this.#shelf.write(key, record);
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
        for (const range of damaged) await repairPart(writer, record, this.#hash, origin, range, signal);
      } finally {
        await writer.close();
      }
    } finally {
      release();
    }
  }

  #origin(url: string, { headers, etagIsHash }: { headers?: HeadersInit; etagIsHash?: boolean }): HttpOrigin {
    const { fetch } = this.#options;
    return new HttpOrigin(url, {
      ...(headers === undefined ? {} : { headers }),
      ...(etagIsHash === undefined ? {} : { etagIsHash }),
      ...(fetch === undefined ? {} : { fetch }),
    });
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

function digestOption(text: string | undefined): { sha256?: string } {
  if (text === undefined) return {};
  const digest = text.toLowerCase().replace(/^sha256[:-]/, "");
  if (!isDigest(digest)) throw new TypeError(`not a SHA-256 of 64 hex digits: ${text}`);
  return { sha256: digest };
}

function sizeGap(found: number, expected: number): ByteRange {
  return { offset: Math.min(found, expected), length: Math.abs(found - expected) };
}

function never(): AbortSignal {
  return new AbortController().signal;
}
