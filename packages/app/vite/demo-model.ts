// The demo model as a file of the app, and what the app has to know of it before it is loaded: the module `virtual:demo-model`.
//
// Its address has a hash, as those of all assets have, so that no cache can give an old one for a new one. The digest is of the
// very file, so that what is stored is known to be it without a request.

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
      const file = await readFile(FILE).catch(() => this.error("models/demo.gguf is missing; it belongs to the project, and the app begins with it"));
      const sha256 = createHash("sha256").update(file).digest("hex");
      return `
        export { default as url } from ${JSON.stringify(`${FILE}?url`)};
        export const bytes = ${file.length};
        export const sha256 = ${JSON.stringify(sha256)};
      `;
    },
  };
}
