// Sources out of what a caller names: on the page into a form that can be sent, on the engine's side into readers.

import { RullamaError } from "../errors.js";
import type { SentSource } from "../protocol.js";
import type { CustomSource, FileSource, ModelSource, StoreOptions } from "../types.js";
import { ModelStore } from "../store/open.js";
import type { OnProgress } from "../store/progress.js";
import { httpSource } from "./http.js";
import { blobSource, bytesSource, nameOf } from "./memory.js";
import { opfsSource } from "./opfs.js";
import type { ByteSource } from "./types.js";

/** The files of a model in a form that can be sent; `addReader` takes what has to stay here. */
export function describe(model: ModelSource, addReader: (reader: CustomSource) => number): SentSource[] {
  const files = Array.isArray(model) ? (model as readonly FileSource[]) : [model as FileSource];
  const first = files[0];
  if (files.length === 1 && (typeof first === "string" || first instanceof URL)) {
    return splitUrls(absolute(first)).map((url) => ({ kind: "url", url }));
  }
  return files.map((file) => describeFile(file, addReader));
}

function describeFile(file: FileSource, addReader: (reader: CustomSource) => number): SentSource {
  if (typeof file === "string" || file instanceof URL) {
    return { kind: "url", url: absolute(file) };
  }
  if (file instanceof Blob) {
    return { kind: "blob", blob: file, name: nameOf(file) };
  }
  if (file instanceof ArrayBuffer) {
    return { kind: "bytes", bytes: new Uint8Array(file) };
  }
  if (ArrayBuffer.isView(file)) {
    return { kind: "bytes", bytes: new Uint8Array(file.buffer, file.byteOffset, file.byteLength) };
  }
  if (typeof file === "object" && file !== null) {
    if ("stored" in file) {
      return { kind: "stored", name: file.stored };
    }
    if ("opfs" in file) {
      return { kind: "opfs", path: file.opfs };
    }
    if (typeof file.read === "function" && Number.isSafeInteger(file.length) && file.length >= 0) {
      const { name = "reader", length } = file;
      return { kind: "page", reader: addReader(file), name, length };
    }
  }
  throw new RullamaError(
    "option.wrong_type",
    "the model is no address, Blob, bytes, { stored }, { opfs } or { length, read }; one of these is needed",
  );
}

/** An address that means the same to a worker, whose own may be another. */
export function absolute(url: string | URL): string {
  try {
    return new URL(url, globalThis.document?.baseURI ?? globalThis.location?.href).href;
  } catch (cause) {
    throw new RullamaError("option.wrong_type", `\`${String(url)}\` is not an address`, { cause });
  }
}

/** Where the wasm file is, or the module, in a form that can be sent. */
export function sentWasm(wasm: string | URL | WebAssembly.Module): string | WebAssembly.Module {
  return wasm instanceof WebAssembly.Module ? wasm : absolute(wasm);
}

/** The addresses of all parts of a split model, by that of any of them; else the address alone. */
export function splitUrls(url: string): string[] {
  const found = /-(\d{5})-of-(\d{5})\.gguf(?=$|[?#])/.exec(url);
  const count = Number(found?.[2]);
  if (!found || count < 1) {
    return [url];
  }
  const part = (index: number) => `-${String(index + 1).padStart(5, "0")}-of-${found[2]}.gguf`;
  const [before, after] = [url.slice(0, found.index), url.slice(found.index + found[0].length)];
  return Array.from({ length: count }, (_, index) => before + part(index) + after);
}

const STORE_OPTIONS = ["name", "replace", "sha256"];

/** The option `store` in a form that can be sent; undefined where nothing is kept. */
export function describeStore(store: boolean | StoreOptions | undefined, sources: readonly SentSource[]): StoreOptions | undefined {
  if (!store) {
    return undefined;
  }
  if (store === true) {
    return {};
  }
  if (typeof store !== "object") {
    throw new RullamaError("option.wrong_type", `\`store\` is \`${String(store)}\`; true, false or an object was expected`);
  }
  const unknown = Object.keys(store).find((name) => !STORE_OPTIONS.includes(name));
  if (unknown) {
    throw new RullamaError("option.unknown", `option \`store.${unknown}\` does not exist`);
  }
  const { name, sha256, replace } = store;
  if (sources.length > 1 && (name ?? sha256) !== undefined) {
    const message = `\`store.name\` and \`store.sha256\` describe one file; the model has ${sources.length}`;
    throw new RullamaError("option.wrong_type", message);
  }
  return {
    ...(name === undefined ? {} : { name }),
    ...(sha256 === undefined ? {} : { sha256 }),
    ...(replace === undefined ? {} : { replace }),
  };
}

export interface OpenOptions {
  signal: AbortSignal;
  headers?: Record<string, string> | undefined;
  /** Keeps what addresses name in the browser. */
  store?: StoreOptions | undefined;
  /** Told how many bytes of a file that is kept have been checked. */
  onVerify: (file: string, loaded: number, total: number) => void;
  /** Told how many bytes of a file have come over the network. */
  onDownload: (file: string, loaded: number, total: number) => void;
  /** Asks the page's reader of this number for a range. */
  readPage: (reader: number, offset: number, length: number) => Promise<Uint8Array>;
}

/** Opens one file for reading. */
export async function open(sent: SentSource, options: OpenOptions): Promise<ByteSource> {
  switch (sent.kind) {
    case "url":
      return options.store ? openStored(sent.url, options.store, options) : openUrl(sent.url, options);
    case "blob":
      return blobSource(sent.blob, sent.name);
    case "bytes":
      return bytesSource(sent.bytes);
    case "stored":
      return withStore((store) => store.source(sent.name, storeProgress(options)));
    case "opfs":
      return opfsSource(sent.path);
    case "page": {
      const { name, length, reader } = sent;
      return { name, length, read: (offset, length) => options.readPage(reader, offset, length) };
    }
  }
}

async function openUrl(url: string, { signal, headers, onDownload }: OpenOptions): Promise<ByteSource> {
  let loaded = 0;
  let total = 0;
  const onBytes = (count: number) => {
    loaded += count;
    // Before the length is known nobody could say how far it is; what is read twice is not more than the file.
    if (total > 0) {
      onDownload(fileName(url), Math.min(loaded, total), total);
    }
  };
  const source = await httpSource(url, { signal, onBytes, ...(headers ? { headers } : {}) });
  total = source.length;
  return source;
}

/** Opens what an address names from the browser's store, downloaded first if it is not there. */
async function openStored(url: string, kept: StoreOptions, options: OpenOptions): Promise<ByteSource> {
  const { signal, headers } = options;
  const progress = storeProgress(options);
  return withStore(async (store) => {
    const { name } = await store.download(url, { ...kept, ...progress, signal, ...(headers ? { headers } : {}) });
    return store.source(name, progress);
  });
}

function storeProgress({ onDownload, onVerify }: OpenOptions): { onProgress: OnProgress } {
  return {
    onProgress: ({ status, file, loaded, total }) =>
      (status === "verify" ? onVerify : onDownload)(file, loaded, total ?? 0),
  };
}

/** Does something with the store. What it opened stays open. */
async function withStore<T>(work: (store: ModelStore) => Promise<T>): Promise<T> {
  const store = await ModelStore.open();
  try {
    return await work(store);
  } finally {
    store.close();
  }
}

/** The last part of an address, or of a path. */
export function fileName(name: string): string {
  const path = name.split(/[?#]/)[0] ?? name;
  return path.split("/").filter(Boolean).pop() ?? name;
}
