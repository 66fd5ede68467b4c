// One line that says what computes, and why.

import type { BackendInfo, EngineInfo } from "rullama";
import type { BackendSetting } from "../state/settings";
import { useParts } from "../ui/parts";

/** What computes a model, or would; `setting` is what the user chose. */
export function backendLine({ kind, reason }: BackendInfo, setting: BackendSetting, gpu?: string): string {
  if (kind === "gpu") {
    const name = gpu ? `The GPU computes: ${gpu}.` : "The GPU computes.";
    return setting === "gpu" ? `${name} You chose it in the settings.` : name;
  }
  return setting === "cpu" ? "The CPU computes. You chose it in the settings." : `The CPU computes. ${reason}`;
}

/** The line of the loaded model. */
export function BackendLine({ info }: { info: EngineInfo }) {
  const { host, preferences } = useParts();
  const { state } = host;
  const setting = state.kind === "ready" ? state.settings.backend : preferences.settings.backend;
  return <p class="muted small backend-line">{backendLine(info.backend, setting, info.gpu?.name)}</p>;
}

/** The line before a model is loaded. It says nothing where the GPU computes, as everybody expects. The Device page says why. */
export function PlannedBackend() {
  const { support, preferences } = useParts();
  const { backend } = preferences.settings;
  const kind = backend === "auto" ? support.auto.kind : backend;
  return kind === "gpu" ? null : (
    <p class="muted small backend-line">
      {"The CPU computes here. "}
      <a href="#/device">Why?</a>
    </p>
  );
}
