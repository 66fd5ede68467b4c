// The demo model: a file of this app, small enough for a first answer before anybody has chosen a model.
//
// It is not loaded by a visit alone: that would take megabytes of connections that are paid for, and memory of graphics
// processors, for whoever came to use a model of their own. The first question loads it, or a press of a button.

import { bytes, sha256, url } from "virtual:demo-model";
import type { ModelChoice } from "./host";
import type { ServerModel } from "./server";

/** What it is stored as. The digest is in it, so that the one of a newer app comes beside the older one and not in its way. */
export const DEMO_NAME = `demo-${sha256.slice(0, 8)}.gguf`;

export const DEMO_TITLE = `Demo model, ${Math.round(bytes / 1e6)} MB, answers questions about rullama`;

/** What it is not. */
export const DEMO_LIMITS = "For demonstration: it is no Gemma, and knows little else.";

/** What to begin with, for who wants to see it answer. */
export const DEMO_QUESTIONS: readonly string[] = ["What is rullama?", "How do I load a model of my own?", "What is 7 + 5?"];

/** Whether a stored file is a demo model, of this app or of one before. */
export function isDemo(name: string | undefined): boolean {
  return name !== undefined && /^demo-[0-9a-f]{8}\.gguf$/.test(name);
}

export function isDemoChoice(choice: ModelChoice): boolean {
  return isDemo(nameOf(choice));
}

/** Whether it is that of this app, and not of one before. */
export function isThisDemo(choice: ModelChoice): boolean {
  return nameOf(choice) === DEMO_NAME;
}

function nameOf(choice: ModelChoice): string | undefined {
  switch (choice.kind) {
    case "stored":
      return choice.names[0];
    case "address":
      return choice.name;
    case "files":
      return choice.files[0]?.name;
  }
}

/** The way to it: at once and without a network where it is stored already. */
export function demoChoice(keep: boolean): ModelChoice {
  return { kind: "address", url, name: DEMO_NAME, keep, sha256, bytes };
}

/** Whether what a server offers is this very model, which needs no second place in a list. */
export function isServedDemo(model: ServerModel): boolean {
  return model.sha256 === undefined ? model.name === "demo.gguf" && model.bytes === bytes : model.sha256 === sha256;
}
