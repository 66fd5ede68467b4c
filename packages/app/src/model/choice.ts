// A model that the user chose: one that is stored, an address, or files from the disk; perhaps with its projector.

import { shortName } from "./parts";
import type { ProjectorChoice } from "./projector";

export type ModelChoice = (
  | { kind: "stored"; names: string[] }
  | { kind: "address"; url: string; keep: boolean; name?: string; sha256?: string; bytes?: number; replace?: boolean }
  | { kind: "files"; files: File[]; keep: boolean }
) & { projector?: ProjectorChoice };

/** Whether the model, or only its projector, will be stored in this browser before it is loaded. */
export function keeps(choice: ModelChoice): boolean {
  return choice.kind === "stored" ? keepsProjector(choice) : choice.keep;
}

/** Whether the projector will be stored: the one of a model that is or will be. */
export function keepsProjector(choice: ModelChoice): boolean {
  const { projector } = choice;
  return projector !== undefined && !("stored" in projector) && (choice.kind === "stored" || choice.keep);
}

/** What the user calls the model. */
export function labelOf(choice: ModelChoice): string {
  switch (choice.kind) {
    case "stored":
      return shortName(choice.names[0] ?? "");
    case "address":
      return shortName(choice.name ?? fileName(choice.url));
    case "files":
      return shortName(choice.files[0]?.name ?? "");
  }
}

/** The last part of an address; the address itself if it has none. */
export function fileName(url: string): string {
  try {
    return decodeURIComponent(new URL(url, location.href).pathname.split("/").pop() || url);
  } catch {
    // Not an address; the check before loading reports that.
    return url;
  }
}

/** Whether two choices are the same stored model. */
export function isSameStored(one: ModelChoice, other: ModelChoice): boolean {
  return one.kind === "stored" && other.kind === "stored" && one.names[0] === other.names[0];
}

/** Whether storing the choice would overwrite a file of the loaded model. */
export function overwrites(choice: ModelChoice, loaded: ModelChoice): boolean {
  if (loaded.kind !== "stored") {
    return false;
  }
  return choice.kind === "files" ? choice.files.some(({ name }) => loaded.names.includes(name)) : choice.kind === "address" && choice.replace === true;
}

/** The choice for a retry: a file that was to be replaced is gone by then, and the new one's download can be resumed. */
export function forRetry(choice: ModelChoice): ModelChoice {
  if (choice.kind !== "address") {
    return choice;
  }
  const { replace: _, ...rest } = choice;
  return rest;
}
