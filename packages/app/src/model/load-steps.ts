// The buttons next to a load error; the same on every page that shows it.

import { count } from "../text/format";
import type { Steps } from "../ui/error-box";
import { notifyError } from "../ui/notices";
import type { Failure, ModelHost } from "./host";

export interface LoadNavigation {
  /** Missing on the Models page itself. */
  models?(): void;
  device(): void;
  settings(): void;
}

export function loadSteps(host: ModelHost, { choice, error, stored }: Failure, go: LoadNavigation): Steps {
  const again = () => void host.load(choice);
  const { code, details } = (error ?? {}) as { code?: unknown; details?: { largestContext?: unknown; fitsOnCpu?: unknown } };
  const largest = details?.largestContext;
  const settings =
    typeof largest === "number" && largest > 0
      ? { label: `Load with ${count(largest)} tokens`, run: () => void host.load(choice, { context: largest }) }
      : { label: "Settings", run: () => go.settings() };
  // A stored file that will never run can only be deleted.
  const useless = stored && /^(gguf|metadata|model|format|tokenizer)\./.test(String(code));
  return {
    retry: { label: "Try again", run: again },
    reload: { label: "Load it again", run: again },
    ...(choice.kind === "address" ? { replace: { label: "Replace it", run: () => void host.load({ ...choice, replace: true }) } } : {}),
    device: { label: "Device", run: () => go.device() },
    // If the engine says what would fit, one click is enough.
    settings: details?.fitsOnCpu ? [settings, { label: "Use the CPU", run: () => void host.load(choice, { backend: "cpu" }) }] : settings,
    backend: { label: "Choose automatically", run: () => void host.load(choice, { backend: "auto" }) },
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
