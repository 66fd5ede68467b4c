// What is shipped contains nothing by others: the package and the app have no dependencies at run time but each other. So there is nothing
// that `npm audit --omit=dev` would have to look up, and whoever adds a dependency has to say so here.

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
}

describe.each<[folder: string, shipped: string[]]>([
  ["npm", []],
  ["app", ["rullama"]],
])("packages/%s", (folder, shipped) => {
  const read = (name: string) => JSON.parse(readFileSync(join(packages, folder, name), "utf8")) as Record<string, Record<string, unknown> | undefined>;

  test("declares no other dependencies", () => {
    const declared = read("package.json");
    const fields = ["dependencies", "peerDependencies", "optionalDependencies", "bundleDependencies", "bundledDependencies"];
    expect(fields.flatMap((field) => Object.keys(declared[field] ?? {}))).toEqual(shipped);
  });

  test("locks no others, directly or through one of them", () => {
    const entries = Object.entries(read("package-lock.json").packages as Record<string, LockEntry>);
    const kept = entries.filter(([, { dev, devOptional }]) => !dev && !devOptional).map(([path]) => path);
    // The package itself, and for the app the folder that the other one is linked from.
    const own = ["", ...(shipped.length > 0 ? ["../npm", ...shipped.map((name) => `node_modules/${name}`)] : [])];
    expect(kept.filter((path) => !own.includes(path))).toEqual([]);
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
    for (const file of files) {
      const found = [...readFileSync(join(packages, folder, file), "utf8").matchAll(named)].map((match) => match[1]);
      // A virtual module is made by a build step of our own.
      expect(found.filter((name) => !shipped.includes(name as string) && !name?.startsWith("virtual:")), file).toEqual([]);
    }
  });
});
