// Threads of the CPU backend: how many there may be, and starting them.
//
// A thread is a worker that instantiates the engine's module on the engine's own memory. Browsers allow such memory only on pages that
// are isolated from others (`crossOriginIsolated`), and waiting for another thread only in workers.

import type { Runtime, Threaded } from "./runtime.js";

/** More threads than this mostly wait for memory. */
const MOST = 8;

/** How long a thread may take to start, in milliseconds. The engine does without those that take longer. */
const PATIENCE = 10_000;

/** The part of the global scope that this file uses. */
export interface Scope {
  crossOriginIsolated?: boolean;
  document?: unknown;
  navigator?: { hardwareConcurrency?: number; userAgent?: string };
  Worker?: unknown;
  Atomics?: object;
}

/** How many threads compute on the CPU here, if the option `threads` is `asked`. */
export function threadCount(asked?: number, scope: Scope = globalThis as Scope): number {
  // A page's own thread has a document.
  if (!scope.crossOriginIsolated || scope.document !== undefined || scope.Worker === undefined) {
    return 1;
  }
  // Futures of a module with shared memory are woken by it.
  if (!("waitAsync" in (scope.Atomics ?? {}))) {
    return 1;
  }
  // With several threads, replies stopped for good in Firefox every now and then, in the middle of a step.
  if (scope.navigator?.userAgent?.includes("Firefox/")) {
    return 1;
  }
  return asked ?? Math.min(scope.navigator?.hardwareConcurrency ?? 1, MOST);
}

/** The threads that run, so that the browser does not forget them. They end with this worker. */
const running: Worker[] = [];

/** Starts threads until `count` compute, the calling one included, if the module has threads. One that cannot be started is left out. */
export async function startThreads(wasm: Runtime & Partial<Threaded>, count: number): Promise<void> {
  if (!wasm.threadParts) {
    return;
  }
  const [module, memory] = wasm.threadParts() as [WebAssembly.Module, WebAssembly.Memory];
  const missing = count - 1 - running.length;
  await Promise.all(Array.from({ length: Math.max(0, missing) }, () => startThread({ module, memory })));
}

/** Starts a thread and waits until it is ready, or known not to be. The engine computes without one that is not. */
async function startThread(parts: { module: WebAssembly.Module; memory: WebAssembly.Memory }): Promise<void> {
  await new Promise<void>((resolve) => {
    const patience = setTimeout(resolve, PATIENCE);
    const settle = () => {
      clearTimeout(patience);
      resolve();
    };
    try {
      const worker = ownThread() ?? blobThread();
      worker.addEventListener("message", () => {
        running.push(worker);
        settle();
      });
      worker.addEventListener("error", (event) => {
        event.preventDefault();
        settle();
      });
      worker.postMessage(parts);
    } catch {
      // The page's policy forbids such workers.
      settle();
    }
  });
}

/** A thread from the package's script; undefined if that is of another origin. */
function ownThread(): Worker | undefined {
  try {
    // Bundlers look for exactly this expression.
    return new Worker(new URL("./thread.js", import.meta.url), { type: "module", name: "rullama thread" });
  } catch {
    return undefined;
  }
}

/** A thread of the page's origin that imports the script from wherever the package is. */
function blobThread(): Worker {
  const text = `import ${JSON.stringify(new URL("./thread.js", import.meta.url).href)};`;
  const url = URL.createObjectURL(new Blob([text], { type: "text/javascript" }));
  const worker = new Worker(url, { type: "module", name: "rullama thread" });
  // The worker has read the URL when its first message arrives.
  worker.addEventListener("message", () => URL.revokeObjectURL(url), { once: true });
  return worker;
}
