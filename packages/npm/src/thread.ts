// A thread that helps an engine to compute: a worker on the engine's memory, which never returns to its event loop.

import { crashThreads, helpThreads, initSync, joinThreads } from "./wasm/rullama-cpu-threads.js";

/** The part of a worker's global scope that this file uses. */
interface Scope {
  postMessage(message: unknown): void;
  addEventListener(type: "message", listener: (event: MessageEvent<Parts>) => void, options: { once: boolean }): void;
}

interface Parts {
  module: WebAssembly.Module;
  memory: WebAssembly.Memory;
}

/** Bytes of a thread's stack. What it computes with is elsewhere. */
const STACK = 512 << 10;

const scope = globalThis as unknown as Scope;

scope.addEventListener(
  "message",
  ({ data: { module, memory } }) => {
    initSync({ module, memory, thread_stack_size: STACK });
    joinThreads();
    scope.postMessage("ready");
    try {
      helpThreads();
    } catch (thrown) {
      // Somebody may be waiting for what this thread was computing.
      crashThreads();
      throw thrown;
    }
  },
  { once: true },
);
