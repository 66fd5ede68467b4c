// The build step for offline use: tells the service worker the list of files of the built app.
//
// Models are not on the list: they have a store of their own, and a visit alone must not download one.
//
// The step runs when all files are written, and puts two constants before the worker's code. Any change of any file changes
// `VERSION`, which makes browsers download the new files.

import { createHash } from "node:crypto";
import { readFile, readdir, writeFile } from "node:fs/promises";
import { join, relative, sep } from "node:path";
import type { Plugin } from "vite";

const WORKER = "service-worker.js";

export function offline(): Plugin {
  let folder = "";
  return {
    name: "rullama-offline",
    apply: "build",
    configResolved(config) {
      folder = join(config.root, config.build.outDir);
    },
    closeBundle: {
      order: "post",
      sequential: true,
      async handler() {
        const files = (await filesIn(folder)).filter((file) => file !== WORKER && !/\.(map|gguf)$/.test(file));
        const hash = createHash("sha256");
        for (const file of files) {
          hash.update(file).update(await readFile(join(folder, file)));
        }
        const worker = join(folder, WORKER);
        const text = await readFile(worker, "utf8");
        hash.update(text);
        const constants = `const VERSION=${JSON.stringify(hash.digest("hex").slice(0, 16))},FILES=${JSON.stringify(files)};\n`;
        await writeFile(worker, constants + text);
      },
    },
  };
}

/** Paths of all files below a folder, with slashes, in an order that does not change. */
async function filesIn(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => relative(folder, join(entry.parentPath, entry.name)).split(sep).join("/"))
    .sort();
}
