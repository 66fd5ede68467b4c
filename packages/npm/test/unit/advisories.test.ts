// The offline check of shipped packages (tools/advisories/npm.mjs): what it calls shipped, and which versions it calls vulnerable.

import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
// @ts-expect-error: a script without types.
import { findings, readTable, shipped } from "../../../../tools/advisories/npm.mjs";

const TABLE = "# npm advisories as of 2026-01-02, for tests\n# a comment\nGHSA-1\tkatex\t< 0.16.10|>= 1.0.0-beta.2, < 1.0.1\t2024-03-25\tit hangs\nGHSA-2\t@a/b\t= 4.4.2\t2025-09-08\tmalware\n";

const check = (name: string, version: string): string[] => findings(readTable(TABLE).advisories, [{ name, version }]);

describe("a table of advisories", () => {
  test.each([
    ["katex", "0.16.9"],
    ["katex", "0.2.0"],
    ["katex", "0.16.10-rc.1"],
    ["katex", "1.0.0-beta.2"],
    ["katex", "1.0.0-beta.11"],
    ["katex", "1.0.0"],
    ["@a/b", "4.4.2"],
  ])("finds %s %s", (name, version) => {
    const id = name === "katex" ? "GHSA-1, it hangs" : "GHSA-2, malware";
    expect(check(name, version)).toEqual([`${name} ${version}: ${id}`]);
  });

  test.each([
    ["katex", "0.16.10"],
    ["katex", "0.100.0"],
    ["katex", "1.0.0-beta.1"],
    ["katex", "1.0.0-alpha.3"],
    ["katex", "1.0.1"],
    ["@a/b", "4.4.3"],
    ["b", "4.4.2"],
  ])("does not find %s %s", (name, version) => {
    expect(check(name, version)).toEqual([]);
  });

  test.each(["no title", "# npm advisories as of 2026-01-02\nGHSA-1\tkatex\n", "# npm advisories as of 2026-01-02\nGHSA-1\tkatex\t~1.2\t2024-03-25\tx\n"])("that cannot be read is an error: %j", (text) => {
    expect(() => readTable(text)).toThrow();
  });

  test("is in the repository, with a date", () => {
    const { title, advisories } = readTable(readFileSync(new URL("../../../../tools/advisories/npm.tsv", import.meta.url), "utf8"));
    expect(title).toMatch(/as of 20\d\d-/);
    expect(findings(advisories, [{ name: "katex", version: "0.16.20" }])).toHaveLength(1);
  });
});

test("what is shipped are all packages that are not for development, at any depth", () => {
  const packages = {
    "": { version: "1.0.0" },
    "../npm": { version: "0.1.0" },
    "node_modules/rullama": { link: true },
    "node_modules/katex": { version: "0.16.47" },
    "node_modules/katex/node_modules/@a/b": { version: "4.4.2" },
    "node_modules/vite": { version: "8.3.5", dev: true },
  };
  expect(shipped({ packages })).toEqual([{ name: "katex", version: "0.16.47" }, { name: "@a/b", version: "4.4.2" }]);
});
