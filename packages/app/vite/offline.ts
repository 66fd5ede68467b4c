// The build step behind offline use: tells the service worker which files the built app consists of.
//
// Models are not among them: nobody has asked for theirs yet, and they have a store of their own.
//
// It runs when everything is written, so that nothing a bundler emits late is missed, and puts two constants before the
// worker's own text. Any change of any file changes `VERSION`, which is what makes browsers fetch the new set.

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
