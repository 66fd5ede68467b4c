// The wasm module, instantiated once per thread.

import { RullamaError } from "./errors.js";
import { passOnFeatures } from "./subgroups.js";
import init, * as wasm from "./wasm/rullama.js";

export type Runtime = typeof wasm;

let loaded: Promise<Runtime> | undefined;
const listeners = new Set<(error: RullamaError) => void>();

/** The module; from `location`, if it is not beside this file. */
export async function runtime(location?: string | WebAssembly.Module): Promise<Runtime> {
  if (!("gpu" in navigator)) {
    throw new RullamaError("device.unavailable", "this browser has no WebGPU, or the page is not a secure context");
  }
  loaded ??= start(location).catch((cause: unknown) => {
    // The next attempt may find what this one did not.
    loaded = undefined;
    throw new RullamaError("internal", `the wasm module cannot be started: ${String(cause)}`, { cause });
  });
  return loaded;
}

async function start(location?: string | WebAssembly.Module): Promise<Runtime> {
  passOnFeatures();
  await (location === undefined ? init() : init({ module_or_path: location }));
  wasm.onPanic((text: string) => {
    const error = new RullamaError("internal", `the engine failed by a mistake of its own: ${text}`);
    // What panicked cannot be called again, and a thread has but one instance. Another worker has another.
    loaded = Promise.reject(error);
    loaded.catch(() => {});
    listeners.forEach((listener) => listener(error));
  });
  return wasm;
}

/** Tells `listener` if the module fails for good. Gives back what ends that. */
export function onBroken(listener: (error: RullamaError) => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}
