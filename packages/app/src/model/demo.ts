// The demo model: a file of this app, small enough for a first answer before anybody has chosen a model.
//
// It is not loaded by a visit alone: that would take megabytes of connections that are paid for, and memory of graphics
// processors, for whoever came to use a model of their own. The first question loads it, or a press of a button.

import type { StoredModel } from "rullama";
import { bytes, sha256, url } from "virtual:demo-model";
import type { ModelChoice } from "./host";
import type { ServerModel } from "./server";

/** What it is stored as. The digest is in it, so that the one of a newer app comes beside the older one and not in its way. */
export const DEMO_NAME = `rullama-demo-${sha256.slice(0, 8)}.gguf`;

/** What it is called where its size matters. */
export const DEMO_LABEL = `Demo model, ${Math.round(bytes / 1e6)} MB`;

export const DEMO_TITLE = `${DEMO_LABEL}, answers questions about rullama`;

/** What it is not. */
export const DEMO_LIMITS = "For demonstration: it is not Gemma, and knows little beyond rullama and small sums.";

/** What to begin with, for who wants to see it answer. What it says to them is checked in `crates/cli/tests/demo.rs`. */
export const DEMO_QUESTIONS: readonly string[] = ["What is rullama?", "How do I load a model of my own?", "What is 7 + 5?"];

/** Whether a file is called as a demo model, that of this version of the app or of another. */
export function isDemo(name: string | undefined): boolean {
  return name !== undefined && /^rullama-demo-[0-9a-f]{8}\.gguf$/.test(name);
}

/** Whether a stored file is the demo model of another version of this app, fetched by it: nothing that anybody chose. */
export function isOtherDemo({ name, url: from }: Pick<StoredModel, "name" | "url">): boolean {
  return isDemo(name) && name !== DEMO_NAME && from !== undefined && isOwnAsset(from);
}

/** Whether an address is one that the build gives a demo model. */
function isOwnAsset(address: string): boolean {
  const assets = new URL("assets/", location.href).href;
  return address.startsWith(assets) && /^demo-[\w-]+\.gguf$/.test(address.slice(assets.length));
}

export function isDemoChoice(choice: ModelChoice): boolean {
  return isDemo(nameOf(choice));
}

/** Whether it is that of this version of the app, and not of another. */
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
