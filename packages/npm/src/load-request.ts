// The part of a load's options that decides whether and how a model is loaded. `Engine.load` and `inspect` share it.

import type { Caller } from "./caller.js";
import { anyObject, anySource, oneOf, runningPlace, wasmLocation, within, yesOrNo, type Expected } from "./check.js";
import type { InspectParams } from "./protocol.js";
import { RANGES } from "./ranges.js";
import { describe, describeFile, sentWasm } from "./source/open.js";
import { deviceHints, hasLittleMemory, memoryOptions } from "./tight.js";
import type { CustomSource, InspectOptions, LoadOptions, ModelSource } from "./types.js";

/** The option `threads`. It concerns the package alone, so the engine's table does not have it. */
const THREADS = { whole: true, least: 1, most: 64, words: "a whole number from 1 to 64" } as const;

export const INSPECT_OPTIONS = {
  backend: oneOf("auto", "gpu", "cpu"),
  context: within(RANGES.context),
  projector: anySource,
  keepTowers: yesOrNo,
  kv: oneOf("f32", "f16", "q8"),
  memory: within(RANGES.memory),
  residency: oneOf("gpu", "rows", "paged"),
  tight: yesOrNo,
  signal: anyObject,
  worker: runningPlace,
  wasm: wasmLocation,
  cpuWasm: wasmLocation,
  cpuThreadsWasm: wasmLocation,
  threads: within(THREADS),
  headers: anyObject,
  floor: yesOrNo,
  subgroups: yesOrNo,
} satisfies Record<keyof InspectOptions, Expected>;

/** Whether to save memory: as the options say, otherwise as the device needs. */
export async function isTight({ tight }: Pick<LoadOptions, "tight">): Promise<boolean> {
  return tight ?? hasLittleMemory(await deviceHints());
}

/** The request for the engine's side. Readers stay with `caller`, which answers their reads. */
export function loadRequest(source: ModelSource, options: LoadOptions, tight: boolean, caller: Caller): InspectParams {
  const { backend, kv, memory, floor, subgroups, selfTest, headers, wasm, cpuWasm, cpuThreadsWasm, threads, projector } = options;
  const addReader = (reader: CustomSource) => caller.addReader(reader);
  return {
    sources: describe(source, addReader),
    ...(projector === undefined ? {} : { projector: describeFile(projector, addReader) }),
    options: JSON.stringify({ ...memoryOptions(options, tight), kv, memory, floor, subgroups, self_test: selfTest }),
    ...(headers ? { headers } : {}),
    ...(backend ? { backend } : {}),
    ...(wasm ? { wasm: sentWasm(wasm) } : {}),
    ...(cpuWasm ? { cpuWasm: sentWasm(cpuWasm) } : {}),
    ...(cpuThreadsWasm ? { cpuThreadsWasm: sentWasm(cpuThreadsWasm) } : {}),
    ...(threads === undefined ? {} : { threads }),
  };
}
