// The store itself, over any files and locks. It runs where files can be written: in a dedicated worker.
//
// Each stored file has one lock, shared by all tabs. A writer holds it exclusively, readers share it. A tab that requests a file which
// another tab is downloading waits for the lock and shows the other's progress; then it finds the file complete, or continues the
// download where the other stopped.

import type { ByteSource } from "../source/types.js";
import { checkRange } from "../source/memory.js";
import { downloadUrl } from "../source/addresses.js";
import { FIRST_SILENCE } from "../source/reach.js";
import { Watch, discard } from "../source/wire.js";
import { CheckedFile, corrupt } from "./blocks.js";
import { StoreError, cancelled } from "./error.js";
import type { ByteRange } from "./error.js";
import type { FileReading, StoreFiles, StoreSpace } from "./files.js";
import { MAGIC_BYTES, checkGguf } from "./gguf.js";
import { HttpOrigin } from "./http-origin.js";
import { takeSoon } from "./locks.js";
import type { Release, StoreLocks } from "./locks.js";
import { filesBeside, filesOf, keyOf, keysIn, longNameOfUrl, nameOfUrl, sameFile } from "./names.js";
import type { FileNames } from "./names.js";
import { callOptions, describesOne, digestOption } from "./options.js";
import type { Origin } from "./origin.js";
import { BlobOrigin } from "./origin.js";
import type { OnProgress } from "./progress.js";
import { ProgressMeter, amongSeveral } from "./progress.js";
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
  /** Keeps the locks of stores in different folders apart. */
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
    callOptions("download", options);
    if (typeof urls === "string" || urls instanceof URL) return this.#downloadOne(String(urls), options);
    describesOne(urls, options);
    const models: StoredModel[] = [];
    for (const [index, url] of urls.entries()) {
      const onProgress = amongSeveral(options.onProgress, index, urls.length);
      models.push(await this.#downloadOne(String(url), { ...options, ...(onProgress ? { onProgress } : {}) }));
    }
    return models;
  }

  async import(blob: Blob, options: ImportOptions = {}): Promise<StoredModel> {
    callOptions("import", options);
    const name = options.name ?? (blob as Partial<File>).name;
    if (!name) throw new StoreError("option.wrong_type", "A Blob has no name. Pass the option `name`.");
    try {
      checkGguf(name, new Uint8Array(await blob.slice(0, MAGIC_BYTES).arrayBuffer()));
      return await this.#store({
        name,
        origin: new BlobOrigin(blob),
        expected: { ...digestOption(options.sha256), bytes: blob.size },
        replace: options.replace ?? false,
        signal: options.signal ?? never(),
        onProgress: options.onProgress,
      });
    } catch (cause) {
      if (cause instanceof StoreError && cause.code !== "source.connection") throw cause;
      throw new StoreError("source.io", `\`${name}\` can no longer be read: ${(cause as Error).message}`, { file: name }, { cause });
    }
  }

  async source(name: string, options: SourceOptions = {}): Promise<ByteSource> {
    const { onProgress } = callOptions("source", options);
    const { record, file, release } = await this.#openComplete(name);
    const checked = new CheckedFile(file, record, onProgress);
    // The time of last use is only a convenience, so a failure to record it is ignored.
    await this.#shelf.touch(keyOf(name)).catch(() => {});
    let open = true;
    const source: ByteSource = {
      name,
      length: record.stored,
      async read(offset, length) {
        if (!open) throw new StoreError("storage.missing", `\`${name}\` was closed.`, { file: name });
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
    const signal = callOptions("verify", options).signal ?? never();
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
    if (!release) throw new StoreError("storage.busy", `\`${name}\` is in use, here or in another tab.`, { file: name });
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

  async #downloadOne(given: string, options: DownloadOptions): Promise<StoredModel> {
    const url = downloadUrl(given);
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

  /** The name for a URL; a longer one if a file from another URL already has that name. */
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
    // Checked without the lock, so that readers of the file are not blocked if it has not changed.
    if (before && (await this.#isCurrent(before.record, wanted))) return this.#found(before, wanted);
    const release = await this.#waitToWrite(key, wanted);
    try {
      // The previous holder of the lock may have finished the download.
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

  /** Stores a file. If it replaces `old`, that file stays until the new one is complete. */
  async #fetch(key: string, wanted: Wanted, old: Stored | undefined): Promise<StoredModel> {
    const names = old ? filesBeside(key, old.record.place) : filesOf(key);
    const record = await this.#recordFor(key, names, wanted);
    try {
      if (wanted.signal.aborted) throw cancelled(`Storing \`${wanted.name}\``);
      await transfer({
        files: this.#files,
        names,
        record,
        origin: wanted.origin,
        expected: wanted.expected,
        ...(old ? { kept: old.size } : {}),
        policy: this.#policy,
        ...(this.#options.fetch ? { fetch: this.#options.fetch } : {}),
        signal: wanted.signal,
        ...(wanted.onProgress ? { onProgress: wanted.onProgress } : {}),
      });
    } catch (error) {
      // Nothing was stored that could be resumed, so nothing is left behind.
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
      `A file named \`${record.name}\` is already stored${record.url ? `, from ${record.url}` : ""}. Use the option \`name\` to store this one under another name, or \`replace\` to replace it.`,
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

  /** Whether the server still has the file that is stored. */
  async #isCurrent(record: StoreRecord, { origin, expected, signal }: Wanted): Promise<boolean> {
    if (origin.url === undefined || origin.url !== record.url || record.validator === undefined) return false;
    // The caller expects another digest or size than the stored file's.
    if (expected.sha256 !== undefined || (expected.bytes !== undefined && expected.bytes !== record.bytes)) return false;
    const watch = new Watch(Math.min(this.#policy.stall, FIRST_SILENCE), signal);
    try {
      const reply = await watch.race(origin.open(0, undefined, watch.signal, 2));
      void discard(reply);
      return reply.validator === record.validator && (reply.bytes === undefined || reply.bytes === record.bytes);
    } catch {
      // The download will report the error, with more retries.
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

  /** The record to continue with: that of the same file if some of it is stored, or a new one. */
  async #recordFor(key: string, names: FileNames, wanted: Wanted): Promise<StoreRecord> {
    const { expected, origin } = wanted;
    const fresh = newRecord(wanted.name, Date.now(), this.#options.partBytes ?? PART_BYTES);
    let record = await this.#shelf.recordAt(names.record);
    if (!record || record.complete) {
      // A complete file that lost bytes, or an unreadable record: neither can be continued.
      if (names.record === filesOf(key).record) await this.#shelf.remove(key);
      else await this.#shelf.removeAt(names);
      record = fresh;
    }
    const sameBytes = expected.bytes === undefined || record.bytes === undefined || expected.bytes === record.bytes;
    const sameHash = expected.sha256 !== undefined && expected.sha256 === record.sha256;
    const otherHash = expected.sha256 !== undefined && record.sha256 !== undefined && !sameHash;
    const sameOrigin = record.url === origin.url;
    // Another URL has the same file only if the digest is the same.
    if (!sameBytes || otherHash || !(sameOrigin || sameHash)) restart(record);
    if (!sameOrigin) delete record.validator;
    if (origin.url === undefined) delete record.url;
    else record.url = origin.url;
    if (expected.sha256 !== undefined) record.sha256 = expected.sha256;
    else if (record.stored === 0) delete record.sha256;
    // The record must not describe bytes that are about to be overwritten.
    await writeRecord(this.#files, names.record, record);
    return record;
  }

  async #repair(name: string, damaged: ByteRange[], options: VerifyOptions, signal: AbortSignal): Promise<void> {
    if (!options.repair) throw corrupt(name, damaged);
    const release = await takeSoon(this.#locks, this.#lockOf(keyOf(name)), "exclusive");
    if (!release) throw new StoreError("storage.busy", `\`${name}\` is damaged and cannot be repaired while it is in use, here or in another tab.`, { file: name, damaged });
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
    if (!release) throw new StoreError("storage.busy", `\`${name}\` is being written, here or in another tab.`, { file: name });
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
