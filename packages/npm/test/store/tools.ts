// What the unit tests share: a store over memory with small parts and short waits, and a way to catch errors.

import { vi } from "vitest";

import { RullamaError } from "../../src/errors.js";
import { LocalModelStore } from "../../src/store/local-store.js";
import type { LocalStoreOptions } from "../../src/store/local-store.js";
import { MemoryLocks } from "../../src/store/locks.js";
import { MemoryFiles } from "./memory-files.js";
import type { StoreError } from "../../src/store/error.js";
import type { FakeServer } from "./fake-server.js";

export const URL_1 = "https://models.example/gemma/model.gguf";
export const PART = 1024;
export const BLOCK = PART / 16;

export function makeStore(server?: FakeServer, options: Partial<LocalStoreOptions> & { files?: MemoryFiles } = {}) {
  const files = options.files ?? new MemoryFiles();
  const store = new LocalModelStore({
    locks: new MemoryLocks(),
    partBytes: PART,
    policy: { delay: 1, longestDelay: 2, retries: 3, stall: 5000, checkpoint: 1000 },
    ...(server ? { fetch: server.fetch as typeof fetch } : {}),
    ...options,
    files,
  });
  return { store, files };
}

/** The error of a promise that must fail. Everything thrown is of one kind. */
export async function failure(promise: Promise<unknown>): Promise<StoreError> {
  const nothing = Symbol();
  const result = await promise.then(() => nothing, (error: unknown) => error);
  if (result === nothing) throw new Error("it succeeded, but should have failed");
  if (!(result instanceof RullamaError)) throw result;
  return result as StoreError;
}

/** What `work` gives, with a clock that runs a quarter of a second at each look, for `setTimeout` as for `performance.now()`. */
export async function withFakeClock<T>(work: () => Promise<T>): Promise<{ result: T; seconds: number }> {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] });
  try {
    const start = performance.now();
    let done = false;
    const ending = work().finally(() => (done = true));
    // Its failure is seen by the caller below.
    ending.catch(() => {});
    while (!done) await vi.advanceTimersByTimeAsync(250);
    return { result: await ending, seconds: (performance.now() - start) / 1000 };
  } finally {
    vi.useRealTimers();
  }
}
