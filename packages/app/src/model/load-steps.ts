// What can be done when loading failed: the same buttons on every page that tells of it.

import type { Steps } from "../ui/error-box";
import { count } from "../text/format";
import type { ModelChoice, ModelHost } from "./host";

export interface LoadNavigation {
  models?(): void;
  device(): void;
  settings(): void;
}

export function loadSteps(host: ModelHost, choice: ModelChoice, error: unknown, go: LoadNavigation): Steps {
  const again = () => void host.load(choice);
  const largest = (error as { details?: { largestContext?: unknown } } | undefined)?.details?.largestContext;
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
    ...(go.models ? { models: { label: "Models", run: () => go.models?.() } } : {}),
  };
}
