// The demo model as a file of the app, and an image and a sound to ask it about. The module `virtual:demo-model` has their addresses,
// and the model's size and digest.
//
// The address contains a hash, like those of all assets, so that a cache can't confuse two versions. With the digest, a stored file
// is recognised without a request.

import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import type { Plugin } from "vite";

const MODULE = "virtual:demo-model";
const FILE = fileURLToPath(new URL("../../../models/demo.gguf", import.meta.url));
const EXAMPLES = { image: "demo-image-1.png", sound: "demo-audio-7.wav" };

const example = (name: string) => fileURLToPath(new URL(`../../../testdata/demo/${name}`, import.meta.url));

export function demoModel(): Plugin {
  return {
    name: "rullama-demo-model",
    resolveId: (id) => (id === MODULE ? `\0${MODULE}` : undefined),
    async load(id) {
      if (id !== `\0${MODULE}`) {
        return undefined;
      }
      this.addWatchFile(FILE);
      const file = await readFile(FILE).catch(() => this.error("models/demo.gguf is missing; it is part of the project, and the app needs it"));
      const sha256 = createHash("sha256").update(file).digest("hex");
      return `
        export { default as url } from ${JSON.stringify(`${FILE}?url`)};
        export { default as image } from ${JSON.stringify(`${example(EXAMPLES.image)}?url`)};
        export { default as sound } from ${JSON.stringify(`${example(EXAMPLES.sound)}?url`)};
        export const bytes = ${file.length};
        export const sha256 = ${JSON.stringify(sha256)};
      `;
    },
  };
}
