// Fails the build if a first visit would download too much: all scripts and styles that the page loads at once, compressed.
//
// Chunks that are loaded on demand, the wasm file and the service worker do not count.

import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import type { Plugin } from "vite";

/** The most bytes of a first load, compressed with gzip. */
const MOST = 150_000;

export function budget(): Plugin {
  let folder = "";
  return {
    name: "rullama-budget",
    apply: "build",
    configResolved(config) {
      folder = join(config.root, config.build.outDir);
    },
    // Not `closeBundle`, which also runs after a failed build.
    async writeBundle() {
      const files = await firstLoad(folder);
      const bytes = files.reduce((sum, file) => sum + file.bytes, 0);
      const list = files.map((file) => `${file.path} ${file.bytes}`).join(", ");
      if (bytes > MOST) {
        this.error(`the first load has ${bytes} bytes compressed; ${MOST} are allowed: ${list}`);
      }
      this.info(`first load: ${bytes} of ${MOST} bytes compressed`);
    },
  };
}

/** The page's scripts and styles, and the scripts that those import statically. */
async function firstLoad(folder: string): Promise<{ path: string; bytes: number }[]> {
  const page = await readFile(join(folder, "index.html"), "utf8");
  const paths = [...page.matchAll(/(?:src|href)="\.\/(assets\/[^"]+\.(?:js|css))"/g)].map(([, path]) => path as string);
  if (!paths.some((path) => path.endsWith(".js"))) {
    throw new Error("index.html loads no script");
  }
  const files = new Map<string, number>();
  for (const path of paths) {
    await addWithImports(folder, path, files);
  }
  return [...files].map(([path, bytes]) => ({ path, bytes }));
}

async function addWithImports(folder: string, path: string, files: Map<string, number>): Promise<void> {
  if (files.has(path)) {
    return;
  }
  const content = await readFile(join(folder, path));
  files.set(path, gzipSync(content).length);
  if (path.endsWith(".js")) {
    for (const [, imported] of content.toString("utf8").matchAll(/(?:from|import)\s*"\.\/([^"]+\.js)"/g)) {
      await addWithImports(folder, `assets/${imported}`, files);
    }
  }
}
