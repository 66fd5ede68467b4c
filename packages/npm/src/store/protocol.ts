// What a window and the worker that writes for it say to each other.
//
// Only work that needs a worker crosses: writing, and hashing that would freeze a page.

import { toSent } from "../errors.js";
import { StoreError } from "./error.js";
import type { StoreErrorCode, StoreErrorDetails } from "./error.js";
import type { StoreProgress } from "./progress.js";
import type { DownloadOptions, ImportOptions, ModelStore, StoredModel, Verification, VerifyOptions } from "./types.js";

/** Options without what cannot be cloned. */
type Plain<T> = Omit<T, "signal" | "onProgress" | "headers"> & { headers?: [string, string][] };

/** Every request the worker understands, with what it takes and what it gives back. */
export interface StoreProtocol {
  download: { params: { url: string; options: Plain<DownloadOptions> }; result: StoredModel };
  import: { params: { blob: Blob; options: Plain<ImportOptions> }; result: StoredModel };
  verify: { params: { name: string; options: Plain<VerifyOptions> }; result: Verification };
}

export type StoreMethod = keyof StoreProtocol;

export type StoreRequest =
  | { [M in StoreMethod]: { store: "call"; id: number; folder: string; method: M; params: StoreProtocol[M]["params"] } }[StoreMethod]
  | { store: "cancel"; id: number };

export type StoreAnswer =
  | { store: "progress"; id: number; progress: StoreProgress }
  | { store: "result"; id: number; result: StoredModel | Verification }
  | { store: "error"; id: number; error: PlainError };

export interface PlainError { code: string; message: string; details: StoreErrorDetails }

/** The part of `Worker`, `MessagePort` and a worker's own scope that messages need. */
export interface StorePort {
  postMessage(message: unknown): void;
  addEventListener(type: "message", listener: (event: MessageEvent) => void): void;
  start?(): void;
}

/** Answers requests that come in at `port`. Messages of other kinds are left alone. */
export function serveStore(port: StorePort, open: (folder: string) => Promise<ModelStore>): void {
  const stores = new Map<string, Promise<ModelStore>>();
  const running = new Map<number, AbortController>();
  const answer = (message: StoreAnswer) => port.postMessage(message);

  const opened = (folder: string) => {
    let store = stores.get(folder);
    if (!store) {
      store = open(folder);
      stores.set(folder, store);
      // A store that failed to open may open at the next try.
      store.catch(() => stores.delete(folder));
    }
    return store;
  };

  port.addEventListener("message", ({ data }) => {
    const request = data as StoreRequest | undefined;
    if (request?.store === "cancel") running.get(request.id)?.abort();
    if (request?.store !== "call") return;
    const { id } = request;
    const control = new AbortController();
    running.set(id, control);
    const work = {
      signal: control.signal,
      onProgress: (progress: StoreProgress) => answer({ store: "progress", id, progress }),
    };
    opened(request.folder)
      .then((store) => run(store, request, work))
      .then((result) => answer({ store: "result", id, result }), (error: unknown) => answer({ store: "error", id, error: plain(error) }))
      .finally(() => running.delete(id));
  });
  port.start?.();
}

function run(
  store: ModelStore,
  request: Extract<StoreRequest, { store: "call" }>,
  work: { signal: AbortSignal; onProgress: (progress: StoreProgress) => void },
): Promise<StoredModel | Verification> {
  switch (request.method) {
    case "download":
      return store.download(request.params.url, { ...request.params.options, ...work });
    case "import":
      return store.import(request.params.blob, { ...request.params.options, ...work });
    case "verify":
      return store.verify(request.params.name, { ...request.params.options, ...work });
  }
}

export function plain(error: unknown): PlainError {
  return toSent(error);
}

export function revived({ code, message, details }: PlainError): StoreError {
  return new StoreError(code as StoreErrorCode, message, details);
}
