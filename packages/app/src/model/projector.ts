// Projectors: files that encode images and sounds for models whose own file can't. They are recognised by the name that llama.cpp gives
// them, `mmproj-….gguf`.

import type { FileSource } from "rullama";
import { notify } from "../ui/notices";
import type { ModelChoice } from "./choice";
import type { ModelHost } from "./host";

/** A projector beside a model: stored in this browser, at an address, or a file from the disk. */
export type ProjectorChoice = { stored: string } | { url: string } | { file: File };

export function isProjector(name: string): boolean {
  return /mmproj/i.test(name);
}

/** Where the package reads a projector from. */
export function projectorSource(projector: ProjectorChoice): FileSource {
  return "file" in projector ? projector.file : "url" in projector ? projector.url : projector;
}

/** Loads files that were chosen or dropped together. A projector alone is for the model that is loaded. */
export function filesChoice(files: readonly File[], keep: boolean, loaded: ModelChoice | undefined): ModelChoice | undefined {
  const model = files.filter(({ name }) => !isProjector(name));
  const file = files.find(({ name }) => isProjector(name));
  if (!file) {
    return { kind: "files", files: model, keep };
  }
  return model.length > 0 ? { kind: "files", files: model, keep, projector: { file } } : loaded && { ...loaded, projector: { file } };
}

/** The same, and says so if there is no model for the projector. */
export function chooseFiles(files: readonly File[], keep: boolean, { state }: Pick<ModelHost, "state">): ModelChoice | undefined {
  const choice = filesChoice(files, keep, state.kind === "ready" ? state.choice : undefined);
  if (!choice) {
    notify("This is a projector, a file that only adds images and sounds to a model. Choose it together with the file of its model.");
  }
  return choice;
}
