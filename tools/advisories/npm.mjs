// Checks the npm packages that are shipped against npm.tsv, without a network: `node tools/advisories/npm.mjs`.
//
// npm itself asks its registry for advisories, which an offline machine cannot do. What counts as shipped is every entry of a lock file
// that is not for development only.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../../", import.meta.url));
const LOCKS = ["packages/npm/package-lock.json", "packages/app/package-lock.json"];

/** The advisories of a table, and its first line, which tells their date. */
export function readTable(text) {
  const lines = text.split("\n").filter((line) => line !== "");
  const advisories = lines.filter((line) => !line.startsWith("#")).map((line) => {
    const columns = line.split("\t");
    if (columns.length !== 5) throw new Error(`a line without five columns: ${line}`);
    const [id, name, ranges, date, summary] = columns;
    return { id, name, ranges: ranges.split("|").map(readRange), date, summary };
  });
  const title = lines[0]?.replace(/^# /, "") ?? "";
  if (!/as of \d{4}-\d{2}-\d{2}/.test(title)) throw new Error("the first line does not say the date of the table");
  return { title, advisories };
}

/** The packages of a lock file that are shipped: all but links, our own folders and what is for development. */
export function shipped(lock) {
  const entries = Object.entries(lock.packages).filter(([path, { dev, link }]) => path.includes("node_modules/") && !dev && !link);
  return entries.map(([path, { version }]) => ({ name: path.slice(path.lastIndexOf("node_modules/") + 13), version }));
}

/** Each shipped package with an advisory that its version is vulnerable to. */
export function findings(advisories, packages) {
  return packages.flatMap(({ name, version }) => {
    const found = readVersion(version);
    const vulnerable = (advisory) => advisory.name === name && advisory.ranges.some((range) => range.every((matches) => matches(found)));
    return advisories.filter(vulnerable).map(({ id, summary }) => `${name} ${version}: ${id}, ${summary}`);
  });
}

/** A range such as `>= 1.2.0, < 1.3.1` as a list of tests that a version must pass. */
function readRange(text) {
  const tests = { "<": (order) => order < 0, "<=": (order) => order <= 0, "=": (order) => order === 0, ">=": (order) => order >= 0, ">": (order) => order > 0 };
  return text.split(",").map((part) => {
    const [, comparison, bound] = /^(<=|<|=|>=|>) ?(\S+)$/.exec(part.trim()) ?? [];
    if (!comparison) throw new Error(`\`${part}\` is no comparison with a version`);
    const limit = readVersion(bound);
    return (version) => tests[comparison](compare(version, limit));
  });
}

function readVersion(text) {
  const match = /^(\d+)\.(\d+)\.(\d+)(?:-([0-9A-Za-z.-]+))?(?:\+.*)?$/.exec(text ?? "");
  if (!match) throw new Error(`\`${text}\` is no version`);
  return { numbers: match.slice(1, 4).map(Number), early: match[4]?.split(".") };
}

/** Below, at or above zero as `a` is older than, the same as or newer than `b`, as semantic versioning orders them. */
function compare(a, b) {
  const at = a.numbers.findIndex((number, index) => number !== b.numbers[index]);
  if (at >= 0) return a.numbers[at] - b.numbers[at];
  if (!a.early || !b.early) return Number(!a.early) - Number(!b.early);
  for (let i = 0; i < Math.max(a.early.length, b.early.length); i++) {
    const [x, y] = [a.early[i], b.early[i]];
    if (x === y) continue;
    if (x === undefined || y === undefined) return x === undefined ? -1 : 1;
    const numbers = [x, y].map((word) => /^\d+$/.test(word));
    if (numbers[0] && numbers[1]) return Number(x) - Number(y);
    if (numbers[0] !== numbers[1]) return numbers[0] ? -1 : 1;
    return x < y ? -1 : 1;
  }
  return 0;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { title, advisories } = readTable(readFileSync(join(root, "tools/advisories/npm.tsv"), "utf8"));
  console.log(title);
  let found = 0;
  for (const path of LOCKS) {
    const packages = shipped(JSON.parse(readFileSync(join(root, path), "utf8")));
    const vulnerable = findings(advisories, packages);
    vulnerable.forEach((line) => console.error(`error: ${line}`));
    console.log(`${path}: ${packages.length} shipped packages, ${vulnerable.length} known vulnerabilities`);
    found += vulnerable.length;
  }
  process.exitCode = found > 0 ? 1 : 0;
}
