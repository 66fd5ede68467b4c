// The demo model as a file of the app. The module `virtual:demo-model` has its address, size and digest.
//
// The address contains a hash, like those of all assets, so that a cache can't confuse two versions. With the digest, a stored file
// is recognised without a request.

import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import type { Plugin } from "vite";

const MODULE = "virtual:demo-model";
const FILE = fileURLToPath(new URL("../../../models/demo.gguf", import.meta.url));

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
        export const bytes = ${file.length};
        export const sha256 = ${JSON.stringify(sha256)};
      `;
    },
  };
}
