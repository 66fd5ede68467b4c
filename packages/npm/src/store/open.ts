// Opening the store: the same call in a window and in a worker, each with what that thread can do.

import { LocalModelStore } from "./local-store.js";
import type { LocalStoreOptions } from "./local-store.js";
import { MemoryLocks, WebLocks } from "./locks.js";
import { OpfsFiles } from "./opfs-files.js";
import type { StorePort } from "./protocol.js";
import type { ModelStore as ModelStoreInterface } from "./types.js";
import { WindowModelStore } from "./window-store.js";

export interface OpenStoreOptions {
  /** Folder in the origin's private file system; `rullama` unless told. */
  folder?: string;
  /** In a window: a port where `serveStore` answers (an engine's worker, say), instead of a worker of the store's own. */
  port?: StorePort;
}

const FOLDER = "rullama";
const threadLocks = new MemoryLocks();

/** A store that works in this thread. Writing needs a dedicated worker. */
export async function openLocalStore(options: { folder?: string } & Partial<LocalStoreOptions> = {}): Promise<LocalModelStore> {
  const folder = options.folder ?? FOLDER;
  return new LocalModelStore({
    ...options,
    folder,
    files: options.files ?? (await OpfsFiles.open(folder)),
    locks: options.locks ?? (globalThis.navigator?.locks ? new WebLocks() : threadLocks),
  });
}

async function open(options: OpenStoreOptions = {}): Promise<ModelStoreInterface> {
  const folder = options.folder ?? FOLDER;
  const local = await openLocalStore({ folder });
  if (isDedicatedWorker()) return local;
  const { port } = options;
  return new WindowModelStore({
    folder,
    reading: local,
    connect: () => (port ? { port, close: () => {} } : startWorker()),
  });
}

export type ModelStore = ModelStoreInterface;
export const ModelStore = { open };

function startWorker(): { port: StorePort; close: () => void } {
  // Bundlers recognise this very form and take the worker along.
  const worker = new Worker(new URL("./worker.js", import.meta.url), { type: "module", name: "rullama-store" });
  return { port: worker as unknown as StorePort, close: () => worker.terminate() };
}

function isDedicatedWorker(): boolean {
  return typeof (globalThis as { DedicatedWorkerGlobalScope?: unknown }).DedicatedWorkerGlobalScope === "function";
}
