// The wasm modules: one for the GPU, and two for the CPU, of which one shares its memory with threads. A file is downloaded when it
// is first used, and instantiated once per thread.

import { RullamaError } from "./errors.js";
import { BUNDLER_HINT } from "./hints.js";
import { passOnFeatures } from "./subgroups.js";
import { threadCount } from "./threads.js";
import type { BackendInfo } from "./types.js";
import initGpu, * as gpu from "./wasm/rullama.js";
import initCpu, * as cpu from "./wasm/rullama-cpu.js";
import initThreads, * as threads from "./wasm/rullama-cpu-threads.js";

/** The module for the GPU. */
export type GpuRuntime = typeof gpu;

/** What all modules have. */
export type Runtime = Pick<GpuRuntime, "Cancel" | "WebEngine" | "inspect" | "onPanic">;

/** What the module with threads has besides. */
export type Threaded = Pick<typeof threads, "threadParts">;

type Name = "gpu" | "cpu" | "threads";

/** Where the files are, if they are not next to this one, and how many threads are wanted. */
export interface RuntimeOptions {
  wasm?: string | WebAssembly.Module;
  cpuWasm?: string | WebAssembly.Module;
  cpuThreadsWasm?: string | WebAssembly.Module;
  threads?: number;
}

const loaded: { [N in Name]?: Promise<Runtime> } = {};
const listeners = new Set<(error: RullamaError) => void>();

/** The module of a backend. On the CPU, the one with threads where there may be more than one. */
export async function runtime(kind: BackendInfo["kind"], options: RuntimeOptions = {}): Promise<Runtime> {
  if (kind === "gpu" && !("gpu" in navigator)) {
    throw new RullamaError("device.unavailable", "WebGPU is not available: the browser does not support it, or the page is not served over https or from localhost.");
  }
  if (kind === "cpu" && threadCount(options.threads) > 1) {
    // Some devices have no room for memory that can be shared, and a page's host may not have the file. One thread is slower, but works.
    const wasm = await module("threads", options).catch(() => undefined);
    if (wasm) {
      return wasm;
    }
  }
  return module(kind, options);
}

/** The module for the GPU, which has more than the others. */
export async function gpuRuntime(location?: string | WebAssembly.Module): Promise<GpuRuntime> {
  return (await runtime("gpu", location === undefined ? {} : { wasm: location })) as GpuRuntime;
}

/** A module, loaded once. */
function module(name: Name, options: RuntimeOptions): Promise<Runtime> {
  loaded[name] ??= start(name, options).catch((cause: unknown) => {
    // The next attempt may succeed, for example when the network is back.
    delete loaded[name];
    throw new RullamaError("internal", `The wasm module could not be loaded: ${String(cause)}. ${BUNDLER_HINT}`, { cause });
  });
  return loaded[name];
}

async function start(name: Name, { wasm: gpuWasm, cpuWasm, cpuThreadsWasm }: RuntimeOptions): Promise<Runtime> {
  // The types of the modules have the same members, but TypeScript tells classes with private parts apart.
  const modules = {
    gpu: [initGpu, gpu as Runtime, gpuWasm],
    cpu: [initCpu, cpu as unknown as Runtime, cpuWasm],
    threads: [initThreads, threads as unknown as Runtime, cpuThreadsWasm],
  } as const;
  const [init, wasm, location] = modules[name];
  if (name === "gpu") {
    passOnFeatures();
  }
  await (location === undefined ? init() : init({ module_or_path: location }));
  wasm.onPanic((text: string) => {
    const error = new RullamaError("internal", `The engine crashed, which is a bug in rullama: ${text}`);
    // After a panic the instance is unusable, and a thread has only one. A new worker has a new instance.
    const broken = Promise.reject(error);
    broken.catch(() => {});
    loaded[name] = broken;
    listeners.forEach((listener) => listener(error));
  });
  return wasm;
}

/** Calls `listener` if the module crashes. Gives a function that removes the listener. */
export function onBroken(listener: (error: RullamaError) => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}
