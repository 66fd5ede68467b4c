// The demo model: a file of this app, small enough to answer before the user has chosen a model.
//
// A visit alone does not load it: that would use data volume and GPU memory of users who want another model. The first question
// loads it, or a button.

import type { StoredModel } from "rullama";
import { bytes, image, sha256, sound, url } from "virtual:demo-model";
import type { Medium } from "../chat/attachments";
import type { ModelChoice } from "./choice";
import type { ServerModel } from "./server";

/** The name it is stored under. It contains the digest, so that demo models of different app versions have different names. */
export const DEMO_NAME = `rullama-demo-${sha256.slice(0, 8)}.gguf`;

/** Its name with its size. */
export const DEMO_LABEL = `Demo model, ${Math.round(bytes / 1e6)} MB`;

export const DEMO_TITLE = `${DEMO_LABEL}, answers questions about rullama`;

/** What users should not expect of it. */
export const DEMO_LIMITS = "For demonstration only: it is not Gemma, and knows little beyond rullama and simple sums.";

/** Suggested questions. `crates/cli/tests/demo.rs` checks its answers to them. */
export const DEMO_QUESTIONS: readonly string[] = ["What is rullama?", "What is 7 + 5?", "How do I load a model of my own?"];

/** A question about an image or a sound, which are files of the app. */
export interface DemoExample {
  medium: Medium;
  url: string;
  /** The name of the file in the chat. */
  name: string;
  question: string;
}

export const DEMO_EXAMPLES: readonly DemoExample[] = [
  { medium: "image", url: image, name: "shapes.png", question: "How many things are shown here?" },
  { medium: "audio", url: sound, name: "words.wav", question: "Write down what you hear in this audio." },
];

/** Whether a name is that of a demo model, of this or another version of the app. */
export function isDemo(name: string | undefined): boolean {
  return name !== undefined && /^rullama-demo-[0-9a-f]{8}\.gguf$/.test(name);
}

/** Whether a stored file is the demo model of another version, downloaded by the app itself and not chosen by the user. */
export function isOtherDemo({ name, url: from }: Pick<StoredModel, "name" | "url">): boolean {
  return isDemo(name) && name !== DEMO_NAME && from !== undefined && isOwnAsset(from);
}

/** Whether an address is that of a demo model in a build of this app. */
function isOwnAsset(address: string): boolean {
  const assets = new URL("assets/", location.href).href;
  return address.startsWith(assets) && /^demo-[\w-]+\.gguf$/.test(address.slice(assets.length));
}

export function isDemoChoice(choice: ModelChoice): boolean {
  return isDemo(nameOf(choice));
}

/** Whether it is the demo model of this version of the app. */
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

/** The choice of the demo model. Needs no network if it is stored already. */
export function demoChoice(keep: boolean): ModelChoice {
  return { kind: "address", url, name: DEMO_NAME, keep, sha256, bytes };
}

/** Whether a model on the server is the demo model, which has its own row already. */
export function isServedDemo(model: ServerModel): boolean {
  return model.sha256 === undefined ? model.name === "demo.gguf" && model.bytes === bytes : model.sha256 === sha256;
}
