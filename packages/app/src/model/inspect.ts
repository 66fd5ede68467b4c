// Reading a model's header before anything is downloaded, stored or unloaded.

import * as rullama from "rullama";
import type { LoadOptions, ModelSource } from "rullama";

type Inspect = (source: ModelSource, options?: Pick<LoadOptions, "context" | "signal">) => Promise<unknown>;

// The package exports this from its next version on.
export const inspect = (rullama as { inspect?: Inspect }).inspect;
