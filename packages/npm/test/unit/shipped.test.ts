// What is shipped of others' work. The package has no dependencies at run time. The app ships the packages below, each in one version: a
// new one, or a new version, is added here after a look at what it does and at its advisories (tools/advisories/npm.tsv).

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";

const packages = fileURLToPath(new URL("../../../", import.meta.url));

/** Every package that the app ships, directly or through another one. */
const APP: Record<string, string> = {
  "@preact/signals": "2.11.4",
  "@preact/signals-core": "1.14.5",
  "@types/debug": "4.1.13",
  "@types/hast": "3.0.5",
  "@types/mdast": "4.0.4",
  "@types/ms": "2.1.0",
  "@types/unist": "3.0.3",
  "ccount": "2.0.1",
  "character-entities": "2.0.2",
  "commander": "8.3.0",
  "debug": "4.4.3",
  "decode-named-character-reference": "1.3.0",
  "dequal": "2.0.3",
  "devlop": "1.1.0",
  "escape-string-regexp": "5.0.0",
  "highlight.js": "11.11.2",
  "katex": "0.16.47",
  "longest-streak": "3.1.0",
  "lowlight": "3.3.0",
  "markdown-table": "3.1.0",
  "mdast-util-find-and-replace": "3.0.4",
  "mdast-util-from-markdown": "2.1.0",
  "mdast-util-gfm-autolink-literal": "2.1.0",
  "mdast-util-gfm-strikethrough": "2.0.1",
  "mdast-util-gfm-table": "2.0.1",
  "mdast-util-gfm-task-list-item": "2.0.1",
  "mdast-util-phrasing": "4.1.0",
  "mdast-util-to-markdown": "2.2.3",
  "mdast-util-to-string": "4.0.0",
  "micromark": "4.0.3",
  "micromark-core-commonmark": "2.0.4",
  "micromark-extension-gfm-autolink-literal": "2.1.0",
  "micromark-extension-gfm-strikethrough": "2.1.0",
  "micromark-extension-gfm-table": "2.1.2",
  "micromark-extension-gfm-task-list-item": "2.1.0",
  "micromark-factory-destination": "2.0.1",
  "micromark-factory-label": "2.0.1",
  "micromark-factory-space": "2.1.0",
  "micromark-factory-title": "2.0.1",
  "micromark-factory-whitespace": "2.0.1",
  "micromark-util-character": "2.1.1",
  "micromark-util-chunked": "2.0.1",
  "micromark-util-classify-character": "2.0.1",
  "micromark-util-combine-extensions": "2.0.1",
  "micromark-util-decode-numeric-character-reference": "2.0.2",
  "micromark-util-decode-string": "2.0.1",
  "micromark-util-edit-map": "1.0.0",
  "micromark-util-encode": "2.0.1",
  "micromark-util-html-tag-name": "2.0.1",
  "micromark-util-normalize-identifier": "2.0.1",
  "micromark-util-resolve-all": "2.0.1",
  "micromark-util-sanitize-uri": "2.0.1",
  "micromark-util-subtokenize": "2.1.0",
  "micromark-util-symbol": "2.0.1",
  "micromark-util-types": "2.0.3",
  "ms": "2.1.3",
  "preact": "11.2.0",
  "unist-util-is": "6.0.1",
  "unist-util-stringify-position": "4.0.0",
  "unist-util-visit": "5.2.0",
  "unist-util-visit-parents": "6.1.0",
  "zwitch": "2.0.4",
};

/** Those of them that the app itself names. Our own package is linked from its folder. */
const DIRECT = [
  "@preact/signals",
  "katex",
  "lowlight",
  "mdast-util-from-markdown",
  "mdast-util-gfm-autolink-literal",
  "mdast-util-gfm-strikethrough",
  "mdast-util-gfm-table",
  "mdast-util-gfm-task-list-item",
  "micromark-extension-gfm-autolink-literal",
  "micromark-extension-gfm-strikethrough",
  "micromark-extension-gfm-table",
  "micromark-extension-gfm-task-list-item",
  "micromark-util-normalize-identifier",
  "preact",
  "rullama",
];

interface LockEntry {
  version?: string;
  dev?: boolean;
  devOptional?: boolean;
  link?: boolean;
}

describe.each<[folder: string, direct: string[], shipped: Record<string, string>]>([
  ["npm", [], {}],
  ["app", DIRECT, APP],
])("packages/%s", (folder, direct, shipped) => {
  const read = (name: string) => JSON.parse(readFileSync(join(packages, folder, name), "utf8")) as Record<string, Record<string, unknown> | undefined>;

  test("declares no other dependencies, and these in one exact version", () => {
    const declared = read("package.json");
    expect(Object.keys(declared.dependencies ?? {}).sort()).toEqual(direct);
    for (const [name, version] of Object.entries(declared.dependencies ?? {})) {
      expect(version, name).toBe(name === "rullama" ? "file:../npm" : shipped[name]);
    }
    const fields = ["peerDependencies", "optionalDependencies", "bundleDependencies", "bundledDependencies"];
    expect(fields.flatMap((field) => Object.keys(declared[field] ?? {}))).toEqual([]);
  });

  test("locks no others, directly or through one of them, in these versions", () => {
    const entries = Object.entries(read("package-lock.json").packages as Record<string, LockEntry>);
    // Our own packages are entries without a version of the registry: the folder itself, and a link.
    const kept = entries.filter(([path, { dev, devOptional, link }]) => path.includes("node_modules/") && !dev && !devOptional && !link);
    expect(Object.fromEntries(kept.map(([path, { version }]) => [path.replace(/^node_modules\//, ""), version]))).toEqual(shipped);
  });

  test("imports no others, since a bundler would ship what is only declared for development", () => {
    const folders = ["src", ...(folder === "npm" ? ["bench"] : [])];
    const files = folders.flatMap((name) =>
      readdirSync(join(packages, folder, name), { recursive: true, encoding: "utf8" })
        // What the build of the wasm module writes is not there before it.
        .filter((path) => /\.(ts|js|mjs|css|html)$/.test(path) && !path.startsWith("wasm"))
        .map((path) => join(name, path)),
    );
    expect(files.length).toBeGreaterThan(1);
    const named = /(?:\bfrom\s*|\bimport\s*\(?\s*|\brequire\s*\(\s*|@import\s+(?:url\(\s*)?)["']([@\w][\w@/:.-]*)["']/g;
    // The compiler removes an import of types: no bundler sees it.
    const types = /^import type [^;]*;/gm;
    for (const file of files) {
      const found = [...readFileSync(join(packages, folder, file), "utf8").replace(types, "").matchAll(named)].map((match) => match[1]);
      // A virtual module is made by a build step of our own.
      const isKnown = (name = "") => [...direct, ...Object.keys(shipped)].some((known) => name === known || name.startsWith(`${known}/`)) || name.startsWith("virtual:");
      expect(found.filter((name) => !isKnown(name)), file).toEqual([]);
    }
  });
});
