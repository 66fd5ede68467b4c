// Opening the store: the same call in a window and in a worker, each with what that thread can do.

import { LocalModelStore } from "./local-store.js";
import { MemoryLocks, WebLocks } from "./locks.js";
import { OpfsFiles } from "./opfs-files.js";
import type { StorePort } from "./protocol.js";
import type { ModelStore as ModelStoreInterface } from "./types.js";
import { WindowModelStore } from "./window-store.js";

export interface OpenStoreOptions {
  /** Folder in the origin's private file system; `rullama` unless told. */
  folder?: string;
}

const FOLDER = "rullama";
const threadLocks = new MemoryLocks();

/** A store that works in this thread. Writing needs a dedicated worker. */
export async function openLocalStore(folder: string): Promise<LocalModelStore> {
  const locks = globalThis.navigator?.locks ? new WebLocks() : threadLocks;
  return new LocalModelStore({ folder, files: await OpfsFiles.open(folder), locks });
}

async function open({ folder = FOLDER }: OpenStoreOptions = {}): Promise<ModelStoreInterface> {
  const local = await openLocalStore(folder);
  return isDedicatedWorker() ? local : new WindowModelStore({ folder, reading: local, connect: startWorker });
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
