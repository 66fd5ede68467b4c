// The part of a load's options that decides whether and how a model is loaded. `Engine.load` and `inspect` share it.

import type { Caller } from "./caller.js";
import { anyObject, oneOf, runningPlace, wasmLocation, within, yesOrNo, type Expected } from "./check.js";
import type { InspectParams } from "./protocol.js";
import { RANGES } from "./ranges.js";
import { describe, sentWasm } from "./source/open.js";
import { deviceHints, hasLittleMemory, memoryOptions } from "./tight.js";
import type { InspectOptions, LoadOptions, ModelSource } from "./types.js";

export const INSPECT_OPTIONS = {
  backend: oneOf("auto", "gpu", "cpu"),
  context: within(RANGES.context),
  kv: oneOf("f32", "f16", "q8"),
  memory: within(RANGES.memory),
  residency: oneOf("gpu", "rows", "paged"),
  tight: yesOrNo,
  signal: anyObject,
  worker: runningPlace,
  wasm: wasmLocation,
  cpuWasm: wasmLocation,
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
  const { backend, kv, memory, floor, subgroups, selfTest, headers, wasm, cpuWasm } = options;
  return {
    sources: describe(source, (reader) => caller.addReader(reader)),
    options: JSON.stringify({ ...memoryOptions(options, tight), kv, memory, floor, subgroups, self_test: selfTest }),
    ...(headers ? { headers } : {}),
    ...(backend ? { backend } : {}),
    ...(wasm ? { wasm: sentWasm(wasm) } : {}),
    ...(cpuWasm ? { cpuWasm: sentWasm(cpuWasm) } : {}),
  };
}
