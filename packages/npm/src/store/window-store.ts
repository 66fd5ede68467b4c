// The store in a window. It reads, lists and deletes itself; a worker writes and hashes, because sync access handles exist only there and
// hashing gigabytes would freeze the page.

import { BUNDLER_HINT } from "../hints.js";
import { absolute } from "../source/addresses.js";
import type { ByteSource } from "../source/types.js";
import { StoreError, cancelled } from "./error.js";
import type { StoreSpace } from "./files.js";
import { headersOf } from "./http-origin.js";
import { callOptions, describesOne } from "./options.js";
import { askToPersist } from "./persist.js";
import { revived } from "./protocol.js";
import type { StoreAnswer, StoreMethod, StorePort, StoreProtocol } from "./protocol.js";
import { amongSeveral } from "./progress.js";
import type { OnProgress } from "./progress.js";
import type { DownloadOptions, ImportOptions, ModelStore, SourceOptions, StoredModel, Verification, VerifyOptions, WorkOptions } from "./types.js";

export interface WindowStoreOptions {
  folder: string;
  /** A store over the same folder, for the operations that a window can do itself. */
  reading: ModelStore;
  /** Starts the worker, when it is first needed. */
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
    callOptions("download", options);
    askToPersist();
    if (typeof urls === "string" || urls instanceof URL) return this.#download(urls, options);
    describesOne(urls, options);
    const models: StoredModel[] = [];
    for (const [index, url] of urls.entries()) {
      const onProgress = amongSeveral(options.onProgress, index, urls.length);
      models.push(await this.#download(url, { ...options, ...(onProgress ? { onProgress } : {}) }));
    }
    return models;
  }

  async import(blob: Blob, options: ImportOptions = {}): Promise<StoredModel> {
    callOptions("import", options);
    askToPersist();
    const name = options.name ?? (blob as Partial<File>).name;
    return this.#call("import", { blob, options: { ...plainOptions(options), ...(name ? { name } : {}) } }, options);
  }

  source(name: string, options?: SourceOptions): Promise<ByteSource> {
    return this.#options.reading.source(name, options);
  }

  async verify(name: string, options: VerifyOptions = {}): Promise<Verification> {
    callOptions("verify", options);
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
    this.#fail(cancelled("The operation of the store"));
  }

  async #download(url: string | URL, options: DownloadOptions): Promise<StoredModel> {
    return this.#call("download", { url: absolute(url), options: plainOptions(options) }, options);
  }

  #call<M extends StoreMethod>(method: M, params: StoreProtocol[M]["params"], { signal, onProgress }: WorkOptions): Promise<StoreProtocol[M]["result"]> {
    return new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(cancelled(`The ${method}`));
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
        reject(new StoreError("option.wrong_type", `An option of \`${method}\` cannot be posted to a worker: ${String(cause)}`, {}, { cause }));
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
      this.#fail(new StoreError("storage.unavailable", `The store's worker failed: ${(event as ErrorEvent).message || `its script could not be loaded. ${BUNDLER_HINT}`}`));
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

function plainOptions<T extends WorkOptions & { headers?: HeadersInit }>(options: T): Omit<T, "signal" | "onProgress" | "headers"> & { headers?: [string, string][] } {
  const { signal: _signal, onProgress: _onProgress, headers, ...rest } = options;
  return { ...rest, ...(headers === undefined ? {} : { headers: [...headersOf(headers).entries()] as [string, string][] }) };
}
