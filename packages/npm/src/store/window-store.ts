// The store as a window has it: reading, listing and deleting happen here, writing and hashing in a worker,
// because sync access handles exist only there and a hash of gigabytes would freeze the page.

import type { ByteSource } from "../source/types.js";
import { StoreError, cancelled } from "./error.js";
import type { StoreSpace } from "./files.js";
import { headersOf } from "./http-origin.js";
import { describesOne } from "./options.js";
import { askToPersist } from "./persist.js";
import { revived } from "./protocol.js";
import type { StoreAnswer, StoreMethod, StorePort, StoreProtocol } from "./protocol.js";
import type { OnProgress } from "./progress.js";
import type { DownloadOptions, ImportOptions, ModelStore, SourceOptions, StoredModel, Verification, VerifyOptions, WorkOptions } from "./types.js";

export interface WindowStoreOptions {
  folder: string;
  /** A store over the same folder, for what a window can do itself. */
  reading: ModelStore;
  /** Starts the worker. Called when it is first needed. */
  connect: () => { port: StorePort; close: () => void };
}

interface Call {
  resolve: (result: never) => void;
  reject: (error: Error) => void;
  onProgress: OnProgress | undefined;
}

export class WindowModelStore implements ModelStore {
  readonly #options: WindowStoreOptions;
  readonly #calls = new Map<number, Call>();
  #connection: { port: StorePort; close: () => void } | undefined;
  #next = 1;

  constructor(options: WindowStoreOptions) {
    this.#options = options;
  }

  list(): Promise<StoredModel[]> {
    return this.#options.reading.list();
  }

  download(url: string | URL, options?: DownloadOptions): Promise<StoredModel>;
  download(urls: readonly (string | URL)[], options?: DownloadOptions): Promise<StoredModel[]>;
  async download(urls: string | URL | readonly (string | URL)[], options: DownloadOptions = {}): Promise<StoredModel | StoredModel[]> {
    askToPersist();
    if (typeof urls === "string" || urls instanceof URL) return this.#download(urls, options);
    describesOne(urls, options);
    const models: StoredModel[] = [];
    for (const url of urls) models.push(await this.#download(url, options));
    return models;
  }

  async import(blob: Blob, options: ImportOptions = {}): Promise<StoredModel> {
    askToPersist();
    const name = options.name ?? (blob as Partial<File>).name;
    return this.#call("import", { blob, options: { ...plainOptions(options), ...(name ? { name } : {}) } }, options);
  }

  source(name: string, options?: SourceOptions): Promise<ByteSource> {
    return this.#options.reading.source(name, options);
  }

  async verify(name: string, options: VerifyOptions = {}): Promise<Verification> {
    return this.#call("verify", { name, options: plainOptions(options) }, options);
  }

  export(name: string): Promise<File> {
    return this.#options.reading.export(name);
  }

  delete(name: string): Promise<void> {
    return this.#options.reading.delete(name);
  }

  estimate(): Promise<StoreSpace> {
    return this.#options.reading.estimate();
  }

  close(): void {
    this.#connection?.close();
    this.#connection = undefined;
    this.#fail(cancelled("the store's work"));
  }

  async #download(url: string | URL, options: DownloadOptions): Promise<StoredModel> {
    // Against the page: in the worker a relative address would mean something else.
    return this.#call("download", { url: absolute(url), options: plainOptions(options) }, options);
  }

  #call<M extends StoreMethod>(method: M, params: StoreProtocol[M]["params"], { signal, onProgress }: WorkOptions): Promise<StoreProtocol[M]["result"]> {
    return new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(cancelled(method));
      const id = this.#next++;
      const port = this.#port();
      const cancel = () => port.postMessage({ store: "cancel", id });
      signal?.addEventListener("abort", cancel, { once: true });
      const done = () => {
        signal?.removeEventListener("abort", cancel);
        this.#calls.delete(id);
      };
      this.#calls.set(id, {
        resolve: (result) => (done(), resolve(result)),
        reject: (error) => (done(), reject(error)),
        onProgress,
      });
      try {
        port.postMessage({ store: "call", id, folder: this.#options.folder, method, params });
      } catch (cause) {
        done();
        reject(new StoreError("option.wrong_type", `an option of \`${method}\` cannot be sent to a worker: ${String(cause)}`, {}, { cause }));
      }
    });
  }

  #port(): StorePort {
    if (this.#connection) return this.#connection.port;
    this.#connection = this.#options.connect();
    const { port } = this.#connection;
    port.addEventListener("message", ({ data }) => this.#answer(data as StoreAnswer | undefined));
    const broken = port as StorePort & { addEventListener(type: string, listener: (event: Event) => void): void };
    broken.addEventListener("error", (event: Event) => {
      this.#connection = undefined;
      this.#fail(new StoreError("storage.unavailable", `the store's worker failed: ${(event as ErrorEvent).message ?? "it did not start"}`));
    });
    port.start?.();
    return port;
  }

  #answer(message: StoreAnswer | undefined): void {
    if (message?.store === undefined) return;
    const call = this.#calls.get(message.id);
    if (!call) return;
    if (message.store === "progress") call.onProgress?.(message.progress);
    if (message.store === "result") call.resolve(message.result as never);
    if (message.store === "error") call.reject(revived(message.error));
  }

  #fail(error: Error): void {
    for (const call of [...this.#calls.values()]) call.reject(error);
  }
}

function absolute(url: string | URL): string {
  try {
    return new URL(url, globalThis.location?.href).href;
  } catch (cause) {
    throw new StoreError("option.wrong_type", `\`${String(url)}\` is not an address`, {}, { cause });
  }
}

function plainOptions<T extends WorkOptions & { headers?: HeadersInit }>(options: T): Omit<T, "signal" | "onProgress" | "headers"> & { headers?: [string, string][] } {
  const { signal: _signal, onProgress: _onProgress, headers, ...rest } = options;
  return { ...rest, ...(headers === undefined ? {} : { headers: [...headersOf(headers).entries()] as [string, string][] }) };
}
