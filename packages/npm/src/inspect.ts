// Whether a model can be loaded, from its header alone.

import { checkedOptions } from "./check.js";
import { connect } from "./connect.js";
import { RullamaError } from "./errors.js";
import { INSPECT_OPTIONS, isTight, loadRequest } from "./load-request.js";
import type { InspectOptions, ModelReport, ModelSource } from "./types.js";

/**
 * Checks whether {@link Engine.load} could load a model, without reading its weights: that it is a valid GGUF file of a supported
 * architecture with all tensors in supported formats and a usable tokenizer, and that it fits the GPU's limits and `options.memory`.
 * Rejects with the error that `Engine.load` would reject with, such as `gguf.not_gguf` or `memory.too_large`.
 *
 * Reads only the header of each file: a few MiB, by Range requests if the source is a URL. Runs in a worker of its own and does not
 * affect an engine that is already loaded.
 */
export async function inspect(source: ModelSource, given: InspectOptions = {}): Promise<ModelReport> {
  const options = checkedOptions(given, INSPECT_OPTIONS);
  const { worker = true, signal } = options;
  if (signal?.aborted) {
    throw RullamaError.cancelled(signal.reason);
  }
  const tight = await isTight(options);
  const caller = connect(worker);
  try {
    return await caller.call("inspect", loadRequest(source, options, tight, caller), { signal });
  } catch (thrown) {
    throw RullamaError.from(thrown);
  } finally {
    caller.break(new RullamaError("engine.unloaded", "The inspection is finished."));
  }
}
