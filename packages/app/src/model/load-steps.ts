// What can be done when loading failed: the same buttons on every page that tells of it.

import { count } from "../text/format";
import type { Steps } from "../ui/error-box";
import { notifyError } from "../ui/notices";
import type { Failure, ModelHost } from "./host";

export interface LoadNavigation {
  /** Not on the page itself. */
  models?(): void;
  device(): void;
  settings(): void;
}

export function loadSteps(host: ModelHost, { choice, error, stored }: Failure, go: LoadNavigation): Steps {
  const again = () => void host.load(choice);
  const { code, details } = (error ?? {}) as { code?: unknown; details?: { largestContext?: unknown } };
  const largest = details?.largestContext;
  // It is there, and will not run: deleting it is what remains. What was stored just now and is no model at all is gone already.
  const gone = code === "gguf.not_gguf" && choice.kind !== "stored";
  const useless = stored && !gone && /^(gguf|metadata|model|format|tokenizer)\./.test(String(code));
  return {
    retry: { label: "Try again", run: again },
    reload: { label: "Load it again", run: again },
    ...(choice.kind === "address" ? { replace: { label: "Replace it", run: () => void host.load({ ...choice, replace: true }) } } : {}),
    device: { label: "Device", run: () => go.device() },
    // Where the engine says what would fit, one press is enough.
    settings:
      typeof largest === "number" && largest > 0
        ? { label: `Load with ${count(largest)} tokens`, run: () => void host.load(choice, largest) }
        : { label: "Settings", run: () => go.settings() },
    ...(go.models
      ? { models: { label: "Models", run: () => go.models?.() } }
      : useless
        ? { models: { label: "Delete it", run: () => void remove(host, stored) } }
        : {}),
  };
}

async function remove(host: ModelHost, names: readonly string[]): Promise<void> {
  try {
    await host.delete(names);
    host.dismiss();
  } catch (error) {
    notifyError(error);
  }
}
