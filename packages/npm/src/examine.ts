// Examines the browser's GPU, without a model.

import { anyObject, checkedOptions, runningPlace, wasmLocation, yesOrNo } from "./check.js";
import { connect } from "./connect.js";
import { RullamaError } from "./errors.js";
import { sentWasm } from "./source/open.js";
import type { DeviceReport, ExamineOptions } from "./types.js";

const OPTIONS = { worker: runningPlace, wasm: wasmLocation, floor: yesOrNo, subgroups: yesOrNo, signal: anyObject };

/** Reports the GPU's limits, tests each family of kernels on it and measures its memory bandwidth. Takes a few seconds. */
export async function examine(options: ExamineOptions = {}): Promise<DeviceReport> {
  const { worker = true, wasm, floor, subgroups, signal } = checkedOptions(options, OPTIONS);
  const caller = connect(worker);
  try {
    const params = { options: JSON.stringify({ floor, subgroups }), ...(wasm ? { wasm: sentWasm(wasm) } : {}) };
    return await caller.call("examine", params, { signal });
  } catch (thrown) {
    throw RullamaError.from(thrown);
  } finally {
    caller.break(new RullamaError("engine.unloaded", "The examination is finished."));
  }
}
