// Loading a model: on the backend that was asked for, and with `auto` on the CPU if the GPU turns out to be of no use.

import { chooseBackend, reasonToLeave, type Gpu } from "./backend.js";
import { RullamaError } from "./errors.js";
import type { InspectParams } from "./protocol.js";
import { runtime, type Runtime } from "./runtime.js";
import { closeFiles, openFiles, urlsOf, type ModelFiles } from "./source/files.js";
import { held } from "./source/held.js";
import { isStored, open, openRemote, type OpenOptions } from "./source/open.js";
import { startThreads, threadCount } from "./threads.js";
import type { BackendInfo, ModelReport } from "./types.js";
import type { WebEngine } from "./wasm/rullama.js";

export type Cancel = InstanceType<Runtime["Cancel"]>;

/** How files are opened, whether their downloads are reported or not. */
export type Reading = Omit<OpenOptions, "onDownload">;

/** What a load needs, however often it is tried. */
export interface Wanted {
  params: InspectParams;
  files: ModelFiles;
}

/** A model with everything that was opened for it. */
export interface Loaded extends Wanted {
  wasm: Runtime;
  engine: WebEngine;
  backend: BackendInfo;
  gpuName: string;
}

/** The progress of a load, as the engine tells it. */
export type Told = (status: "upload" | "compile", loaded: number, total: number) => void;

/** Where more than this is held in memory, a 32-bit address space has no room for the rest. */
const MOST_ON_CPU = 2 ** 31;

/** The backend that was asked for, and its module. */
export async function chosenRuntime(params: InspectParams): Promise<{ backend: BackendInfo; wasm: Runtime }> {
  const backend = await chooseBackend(params.backend);
  return { backend, wasm: await runtime(backend.kind, params) };
}

/** Loads a model. */
export async function loadModel(wanted: Wanted, backend: BackendInfo, signal: AbortSignal, told: Told): Promise<Loaded> {
  for (let losses = 0; ; losses++) {
    try {
      return await loadOn(backend, wanted, signal, told);
    } catch (thrown) {
      const why = backend.kind === "gpu" && !signal.aborted ? reasonToMove(wanted, thrown) : undefined;
      if (why === undefined) {
        throw backend.kind === "gpu" ? await withAdvice(wanted, thrown, signal) : thrown;
      }
      // Losing a GPU once says little.
      if (RullamaError.from(thrown).code !== "device.lost" || losses > 0) {
        return await loadOn({ kind: "cpu", reason: why }, withoutLimit(wanted), signal, told);
      }
    }
  }
}

/** The same without the limit of memory, which was meant for the GPU: with it, the CPU could read weights again for each token. */
export function withoutLimit({ params, files }: Wanted): Wanted {
  const options = JSON.stringify({ ...(JSON.parse(params.options) as object), memory: undefined });
  return { params: { ...params, options }, files };
}

/** Why a model moves to the CPU after an error of the GPU; undefined if it does not. */
export function reasonToMove({ params }: Wanted, thrown: unknown): string | undefined {
  return (params.backend ?? "auto") === "auto" ? reasonToLeave(RullamaError.from(thrown)) : undefined;
}

/** Loads a model on one backend. */
export async function loadOn(backend: BackendInfo, { params, files }: Wanted, signal: AbortSignal, told: Told): Promise<Loaded> {
  const onGpu = backend.kind === "gpu";
  const wasm = await runtime(backend.kind, params);
  await startThreads(wasm, threadCount(params.threads));
  const name = onGpu ? await gpuName() : "";
  // Only where something else can take over is a GPU given up that is lost twice within a minute.
  const mayMove = onGpu && (params.backend ?? "auto") === "auto";
  const options = mayMove ? JSON.stringify({ ...(JSON.parse(params.options) as object), give_up: true }) : params.options;
  const sources = onGpu ? files.sources : await held(files.sources, signal);
  const engine = await cancellable(wasm, signal, (cancel) => wasm.WebEngine.load(sources, files.projector, options, told, cancel));
  return { params, files, wasm, engine, backend, gpuName: name };
}

/** The error of a model that does not fit on the GPU; where the CPU has room for it, with the advice to use that. */
async function withAdvice({ params, files }: Wanted, thrown: unknown, signal: AbortSignal): Promise<unknown> {
  const { code, message, details } = RullamaError.from(thrown);
  if (!["memory.too_large", "memory.exhausted"].includes(code) || !(await fitsOnCpu(withoutLimit({ params, files }), signal))) {
    return thrown;
  }
  const advice = `${message}. The CPU has room for it: load it with \`backend: "cpu"\``;
  return new RullamaError(code, advice, { cause: thrown, details: { ...details, fitsOnCpu: true } });
}

/** Whether the CPU could hold a model. */
async function fitsOnCpu(wanted: Wanted, signal: AbortSignal): Promise<boolean> {
  try {
    const report = await inspectOn(await runtime("cpu", wanted.params), wanted, signal);
    return report.memory.needed <= MOST_ON_CPU;
  } catch {
    return false;
  }
}

async function inspectOn(wasm: Runtime, { params, files }: Wanted, signal: AbortSignal): Promise<ModelReport> {
  const report = cancellable(wasm, signal, (cancel) => wasm.inspect(files.sources, files.projector, params.options, cancel));
  return JSON.parse(await report) as ModelReport;
}

/** Inspects a model; fails as loading it would. */
export async function inspectModel(wanted: Wanted, { backend, wasm }: { backend: BackendInfo; wasm: Runtime }, signal: AbortSignal): Promise<ModelReport> {
  try {
    return { ...(await inspectOn(wasm, wanted, signal)), backend };
  } catch (thrown) {
    const why = backend.kind === "gpu" && !signal.aborted ? reasonToMove(wanted, thrown) : undefined;
    if (why === undefined) {
      throw backend.kind === "gpu" ? await withAdvice(wanted, thrown, signal) : thrown;
    }
    return inspectModel(wanted, { backend: { kind: "cpu", reason: why }, wasm: await runtime("cpu", wanted.params) }, signal);
  }
}

/** Runs `work` with a cancel handle that follows the signal. */
export async function cancellable<T>(wasm: Runtime, signal: AbortSignal, work: (cancel: Cancel) => Promise<T>): Promise<T> {
  if (signal.aborted) {
    throw RullamaError.cancelled();
  }
  const cancel = new wasm.Cancel();
  const abort = () => cancel.cancel();
  signal.addEventListener("abort", abort);
  try {
    return await work(cancel);
  } finally {
    signal.removeEventListener("abort", abort);
    cancel.free();
  }
}

/**
 * The errors of servers that answer Range requests with the whole file or with a wrong `Content-Range`, so that the header cannot be
 * read alone. The download itself can still work, and loading checks the model.
 */
const UNREADABLE: readonly string[] = ["source.range_ignored", "source.content_range"];

/**
 * Inspects a model whose files are about to be downloaded into the store, so that a model that cannot run here is not downloaded at
 * all. Gives the URLs of the files to download: none if nothing is to be stored or all files are in the store already.
 */
export async function inspectDownloads(params: InspectParams, chosen: { backend: BackendInfo; wasm: Runtime }, opening: Reading): Promise<Set<string>> {
  const { store, ...reading } = opening;
  const remote = new Set<string>();
  if (!store) {
    return remote;
  }
  for (const [url, kept] of urlsOf(params, store)) {
    if (!(await isStored(url, kept))) {
      remote.add(url);
    }
  }
  if (remote.size === 0) {
    return remote;
  }
  const silent: OpenOptions = { ...reading, onDownload: () => {}, onVerify: () => {} };
  let files: ModelFiles | undefined;
  try {
    files = await openFiles(params, store, (file, kept) => {
      const isRemote = file.kind === "url" && remote.has(file.url);
      return isRemote ? openRemote(file.url, silent) : open(file, file.kind === "url" ? { ...silent, store: kept } : silent);
    });
    await inspectModel({ params, files }, chosen, opening.signal);
  } catch (thrown) {
    if (!UNREADABLE.includes(String((thrown as { code?: unknown }).code))) {
      throw thrown;
    }
  } finally {
    if (files) {
      closeFiles(files);
    }
  }
  return remote;
}

/** The GPU's name as the browser reports it. wgpu does not ask for all of it. */
export async function gpuName(): Promise<string> {
  const { gpu } = navigator as unknown as { gpu?: Gpu };
  const adapter = await gpu?.requestAdapter({ powerPreference: "high-performance" }).catch(() => null);
  const { description, vendor, architecture } = adapter?.info ?? {};
  return description || [vendor, architecture].filter(Boolean).join(" ");
}
