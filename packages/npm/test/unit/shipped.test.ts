// The dependencies that are shipped. The package has none. The app has the ones listed here, so that adding one is a decision.

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";

const packages = fileURLToPath(new URL("../../../", import.meta.url));

interface LockEntry {
  dev?: boolean;
  optional?: boolean;
  devOptional?: boolean;
  link?: boolean;
  dependencies?: Record<string, string>;
}

/** Packages that contain only types. */
const TYPES = ["hast", "mdast"];

describe.each<[folder: string, shipped: string[]]>([
  ["npm", []],
  [
    "app",
    [
      "@preact/signals",
      "katex",
      "lowlight",
      "mdast-util-from-markdown",
      "mdast-util-gfm",
      "mdast-util-math",
      "micromark-extension-gfm",
      "micromark-extension-math",
      "preact",
      "rullama",
    ],
  ],
])("packages/%s", (folder, shipped) => {
  const read = (name: string) => JSON.parse(readFileSync(join(packages, folder, name), "utf8")) as Record<string, Record<string, unknown> | undefined>;

  test("declares no other dependencies", () => {
    const declared = read("package.json");
    const fields = ["dependencies", "peerDependencies", "optionalDependencies", "bundleDependencies", "bundledDependencies"];
    expect(fields.flatMap((field) => Object.keys(declared[field] ?? {}))).toEqual(shipped);
  });

  test("locks only these and what they depend on", () => {
    const entries = read("package-lock.json").packages as Record<string, LockEntry>;
    const kept = Object.keys(entries).filter((path) => !entries[path]?.dev && !entries[path]?.devOptional);
    // The package itself, the folder that the app links the package from, and everything reachable from the list.
    const reached = new Set(["", ...(shipped.includes("rullama") ? ["../npm"] : [])]);
    const reach = (name: string) => {
      const path = `node_modules/${name}`;
      if (!reached.has(path)) {
        reached.add(path);
        Object.keys(entries[path]?.dependencies ?? {}).forEach(reach);
      }
    };
    shipped.forEach(reach);
    expect(kept.filter((path) => !reached.has(path))).toEqual([]);
  });

  test("imports no others, since a bundler would ship what is only declared for development", () => {
    const folders = ["src", ...(folder === "npm" ? ["bench"] : [])];
    const files = folders.flatMap((name) =>
      readdirSync(join(packages, folder, name), { recursive: true, encoding: "utf8" })
        // The wasm module's files exist only after a build.
        .filter((path) => /\.(tsx?|js|mjs|css|html)$/.test(path) && !path.startsWith("wasm"))
        .map((path) => join(name, path)),
    );
    expect(files.length).toBeGreaterThan(1);
    const named = /(?:\bfrom\s*|\bimport\s*\(?\s*|\brequire\s*\(\s*|@import\s+(?:url\(\s*)?)["']([@\w][\w@/:.-]*)["']/g;
    for (const file of files) {
      const found = [...readFileSync(join(packages, folder, file), "utf8").matchAll(named)].map((match) => match[1]);
      const isShipped = (name = "") => shipped.some((known) => name === known || name.startsWith(`${known}/`));
      // A virtual module is made by a build step of our own. Types are not shipped.
      expect(found.filter((name) => !isShipped(name) && !name?.startsWith("virtual:") && !TYPES.includes(name as string)), file).toEqual([]);
    }
  });
});
