// The model that a caller names: described on the page in a form that can be posted, opened on the engine's side as readers.

import { RullamaError } from "../errors.js";
import type { SentSource } from "../protocol.js";
import type { CustomSource, FileSource, ModelSource, StoreOptions } from "../types.js";
import { ModelStore } from "../store/open.js";
import type { OnProgress } from "../store/progress.js";
import type { StoredModel } from "../store/types.js";
import { absolute, fileName, splitUrls } from "./addresses.js";
import { httpSource } from "./http.js";
import { blobSource, bytesSource, nameOf } from "./memory.js";
import { opfsSource } from "./opfs.js";
import type { ByteSource } from "./types.js";

/** The files of a model in a form that can be posted. `addReader` keeps a reader on this side and gives its number. */
export function describe(model: ModelSource, addReader: (reader: CustomSource) => number): SentSource[] {
  const files = Array.isArray(model) ? (model as readonly FileSource[]) : [model as FileSource];
  const first = files[0];
  if (files.length === 1 && (typeof first === "string" || first instanceof URL)) {
    return splitUrls(absolute(first)).map((url) => ({ kind: "url", url }));
  }
  return files.map((file) => describeFile(file, addReader));
}

/** One file in a form that can be posted. */
export function describeFile(file: FileSource, addReader: (reader: CustomSource) => number): SentSource {
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
    "A model must be a URL, File, Blob, ArrayBuffer, Uint8Array, { stored }, { opfs } or { length, read }, or a list of these.",
  );
}

/** The URL of the wasm file, or the compiled module, in a form that can be posted. */
export function sentWasm(wasm: string | URL | WebAssembly.Module): string | WebAssembly.Module {
  return wasm instanceof WebAssembly.Module ? wasm : absolute(wasm);
}

const STORE_OPTIONS = ["name", "replace", "sha256"];

/** The option `store` in a form that can be posted; undefined if nothing is to be stored. */
export function describeStore(store: boolean | StoreOptions | undefined, sources: readonly SentSource[]): StoreOptions | undefined {
  if (!store) {
    return undefined;
  }
  if (store === true) {
    return {};
  }
  if (typeof store !== "object") {
    throw new RullamaError("option.wrong_type", `Option \`store\` is \`${String(store)}\`. It must be true, false or an object.`);
  }
  const unknown = Object.keys(store).find((name) => !STORE_OPTIONS.includes(name));
  if (unknown) {
    throw new RullamaError("option.unknown", `Option \`store.${unknown}\` does not exist.`);
  }
  const { name, sha256, replace } = store;
  if (sources.length > 1 && (name ?? sha256) !== undefined) {
    const message = `Options \`store.name\` and \`store.sha256\` are for a model of one file. This model has ${sources.length}.`;
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
  /** Stores files from URLs in the browser. */
  store?: StoreOptions | undefined;
  /** Called with the number of bytes of a stored file that have been read and verified. */
  onVerify: (file: string, loaded: number, total: number) => void;
  /** Called with the number of bytes of a file that have been received. */
  onDownload: (file: string, loaded: number, total: number) => void;
  /** Reads a range with the reader of this number on the page. */
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

/** Opens a file on a server, without a copy of the whole where the server does not support Range requests. */
export function openRemote(url: string, { signal, headers }: OpenOptions): Promise<ByteSource> {
  return httpSource(url, { signal, largestWhole: 0, ...(headers ? { headers } : {}) });
}

/** Whether a complete copy of a file is in the store, so that no request is needed to open it. */
export function isStored(url: string, { name, sha256, replace }: StoreOptions): Promise<boolean> {
  if (replace) {
    return Promise.resolve(false);
  }
  const isSame = (model: StoredModel) => (name === undefined || model.name === name) && (sha256 === undefined ? model.url === url : model.sha256 === sha256);
  return withStore(async (store) => (await store.list()).some((model) => model.complete && isSame(model)));
}

async function openUrl(url: string, { signal, headers, onDownload }: OpenOptions): Promise<ByteSource> {
  let loaded = 0;
  let total = 0;
  const onBytes = (count: number) => {
    loaded += count;
    // There is no progress before the length is known. Some ranges are read twice, so the sum can exceed the length.
    if (total > 0) {
      onDownload(fileName(url), Math.min(loaded, total), total);
    }
  };
  const source = await httpSource(url, { signal, onBytes, ...(headers ? { headers } : {}) });
  total = source.length;
  return source;
}

/** Opens a file of the store; downloads it first if it is not there. */
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

/** Runs `work` with the store. The sources that it opens stay open. */
async function withStore<T>(work: (store: ModelStore) => Promise<T>): Promise<T> {
  const store = await ModelStore.open();
  try {
    return await work(store);
  } finally {
    store.close();
  }
}
