// `npm ci` works on every system: each lock file has the native packages of all of them, not only of the one it was written on.

import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";

const root = fileURLToPath(new URL("../../../../", import.meta.url));

const SYSTEMS = ["darwin-arm64", "darwin-x64", "win32-x64", "win32-arm64", "linux-arm64", "linux-x64"];

interface LockEntry {
  version?: string;
  optionalDependencies?: Record<string, string>;
  resolved?: string;
}

describe.each(["packages/npm", "packages/app", "xtask/browser"])("%s", (folder) => {
  const lock = JSON.parse(readFileSync(`${root}${folder}/package-lock.json`, "utf8")) as { packages: Record<string, LockEntry> };
  const entries = Object.entries(lock.packages);

  /** Where npm looks for a package that the one at `path` depends on. */
  const installed = (path: string, name: string): LockEntry | undefined => {
    for (let at = path; ; at = at.slice(0, Math.max(at.lastIndexOf("/node_modules/"), 0))) {
      const found = lock.packages[`${at ? `${at}/` : ""}node_modules/${name}`];
      if (found || at === "") return found;
    }
  };

  test("has every native package of the systems that people use", () => {
    const native = entries.flatMap(([path, { optionalDependencies = {} }]) =>
      Object.entries(optionalDependencies)
        .filter(([name]) => SYSTEMS.some((system) => name.includes(system)))
        .map(([name, version]) => ({ path, name, version })),
    );
    const missing = native.filter(({ path, name, version }) => installed(path, name)?.version !== version);
    expect(missing).toEqual([]);
    // A package with native parts for one of the systems has them for all.
    const families = new Set(native.map(({ path, name }) => `${path} ${name.replace(new RegExp(SYSTEMS.join("|")), "*").replace(/-(gnu|musl|msvc)$/, "")}`));
    for (const family of families) {
      const [path = "", pattern = ""] = family.split(/ (?=[^ ]*$)/);
      const names = Object.keys(lock.packages[path]?.optionalDependencies ?? {});
      for (const system of SYSTEMS) {
        expect(names.some((name) => name.startsWith(pattern.replace("*", system))), `${pattern} of ${path} for ${system}`).toBe(true);
      }
    }
    if (folder !== "xtask/browser") expect(families.size).toBeGreaterThan(0);
  });

  test("names no registry, so that any can be used", () => {
    expect(entries.filter(([, { resolved }]) => resolved?.startsWith("http")).map(([path]) => path)).toEqual([]);
  });
});
