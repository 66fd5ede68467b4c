// The wasm module, instantiated once per thread.

import { RullamaError } from "./errors.js";
import { BUNDLER_HINT } from "./hints.js";
import { passOnFeatures } from "./subgroups.js";
import init, * as wasm from "./wasm/rullama.js";

export type Runtime = typeof wasm;

let loaded: Promise<Runtime> | undefined;
const listeners = new Set<(error: RullamaError) => void>();

/** The module; from `location`, if it is not next to this file. */
export async function runtime(location?: string | WebAssembly.Module): Promise<Runtime> {
  if (!("gpu" in navigator)) {
    throw new RullamaError("device.unavailable", "WebGPU is not available: the browser does not support it, or the page is not served over https or from localhost.");
  }
  loaded ??= start(location).catch((cause: unknown) => {
    // The next attempt may succeed, for example when the network is back.
    loaded = undefined;
    throw new RullamaError("internal", `The wasm module could not be loaded: ${String(cause)}. ${BUNDLER_HINT}`, { cause });
  });
  return loaded;
}

async function start(location?: string | WebAssembly.Module): Promise<Runtime> {
  passOnFeatures();
  await (location === undefined ? init() : init({ module_or_path: location }));
  wasm.onPanic((text: string) => {
    const error = new RullamaError("internal", `The engine crashed, which is a bug in rullama: ${text}`);
    // After a panic the instance is unusable, and a thread has only one. A new worker has a new instance.
    loaded = Promise.reject(error);
    loaded.catch(() => {});
    listeners.forEach((listener) => listener(error));
  });
  return wasm;
}

/** Calls `listener` if the module crashes. Gives a function that removes the listener. */
export function onBroken(listener: (error: RullamaError) => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}
