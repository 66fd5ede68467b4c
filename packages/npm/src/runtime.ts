// The wasm modules, one for the GPU and one for the CPU. Each is downloaded when it is first used, and instantiated once per thread.

import { RullamaError } from "./errors.js";
import { BUNDLER_HINT } from "./hints.js";
import { passOnFeatures } from "./subgroups.js";
import type { BackendInfo } from "./types.js";
import initGpu, * as gpu from "./wasm/rullama.js";
import initCpu, * as cpu from "./wasm/rullama-cpu.js";

/** The module for the GPU. */
export type GpuRuntime = typeof gpu;

/** What both modules have. */
export type Runtime = Pick<GpuRuntime, "Cancel" | "WebEngine" | "inspect" | "onPanic">;

const loaded: { [Kind in BackendInfo["kind"]]?: Promise<Runtime> } = {};
const listeners = new Set<(error: RullamaError) => void>();

/** The module of a backend; from `location`, if it is not next to this file. */
export async function runtime(kind: BackendInfo["kind"], location?: string | WebAssembly.Module): Promise<Runtime> {
  if (kind === "gpu" && !("gpu" in navigator)) {
    throw new RullamaError("device.unavailable", "WebGPU is not available: the browser does not support it, or the page is not served over https or from localhost.");
  }
  loaded[kind] ??= start(kind, location).catch((cause: unknown) => {
    // The next attempt may succeed, for example when the network is back.
    delete loaded[kind];
    throw new RullamaError("internal", `The wasm module could not be loaded: ${String(cause)}. ${BUNDLER_HINT}`, { cause });
  });
  return loaded[kind];
}

/** The module for the GPU, which has more than the other. */
export async function gpuRuntime(location?: string | WebAssembly.Module): Promise<GpuRuntime> {
  return (await runtime("gpu", location)) as GpuRuntime;
}

async function start(kind: BackendInfo["kind"], location?: string | WebAssembly.Module): Promise<Runtime> {
  // The types of the two modules have the same members, but TypeScript tells classes with private parts apart.
  const [init, wasm] = kind === "gpu" ? [initGpu, gpu as Runtime] : [initCpu, cpu as unknown as Runtime];
  if (kind === "gpu") {
    passOnFeatures();
  }
  await (location === undefined ? init() : init({ module_or_path: location }));
  wasm.onPanic((text: string) => {
    const error = new RullamaError("internal", `The engine crashed, which is a bug in rullama: ${text}`);
    // After a panic the instance is unusable, and a thread has only one. A new worker has a new instance.
    const broken = Promise.reject(error);
    broken.catch(() => {});
    loaded[kind] = broken;
    listeners.forEach((listener) => listener(error));
  });
  return wasm;
}

/** Calls `listener` if the module crashes. Gives a function that removes the listener. */
export function onBroken(listener: (error: RullamaError) => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}
