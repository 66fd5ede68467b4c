// Which pieces the parser may be given. For most texts of one length its work is nearly the same; the exceptions are found here, and
// shown as plain text. Nothing a person writes comes near these limits.

import { delimiterColumns } from "./lines";

/** Quotes and lists that begin on one line. */
const MOST_CONTAINERS = 12;
/** Opened square brackets in one paragraph that are not closed. */
const DEEPEST_BRACKETS = 24;
/** Runs of `*`, `_` or `~` in one paragraph, item or row that may begin or end emphasis. */
const MOST_RUNS = 300;

const SPACE = /\s/;
const WORD = /[\p{L}\p{N}]/u;

/** Whether parsing this piece could take much longer than its length suggests. */
export function isTooIntricate(source: string, rows = false): boolean {
  let brackets = 0;
  let runs = 0;
  let table = rows;
  let afterItem = true;
  for (const line of source.split("\n")) {
    const blank = line.trim() === "";
    const item = beginsItem(line, afterItem);
    if (blank || item || table) {
      // Emphasis and links never go on in the next paragraph, list item or table row.
      brackets = 0;
      runs = 0;
    }
    table = !blank && (table || delimiterColumns(line) !== undefined);
    afterItem = blank || item;
    if (containers(line) > MOST_CONTAINERS) {
      return true;
    }
    for (let at = 0; at < line.length; at++) {
      const char = line[at] as string;
      if (char === "[") {
        brackets += 1;
      } else if (char === "]") {
        brackets = Math.max(0, brackets - 1);
      } else if (char === "*" || char === "_" || char === "~") {
        const start = at;
        while (line[at + 1] === char) {
          at += 1;
        }
        runs += mayMark(char, line[start - 1] ?? " ", line[at + 1] ?? " ") ? 1 : 0;
      }
      if (brackets > DEEPEST_BRACKETS || runs > MOST_RUNS) {
        return true;
      }
    }
  }
  return false;
}

/** Whether a list item begins here. Within a paragraph, only a bullet or the number 1 begins a list. */
function beginsItem(line: string, afterItem: boolean): boolean {
  const found = /^[ \t]*(?:[-+*]|(\d{1,9})[.)])[ \t]+[^ \t]/.exec(line);
  return found !== null && (afterItem || found[1] === undefined || found[1] === "1");
}

function mayMark(char: string, before: string, after: string): boolean {
  if (SPACE.test(before) && SPACE.test(after)) {
    return false;
  }
  return char !== "_" || !WORD.test(before) || !WORD.test(after);
}

/** How many quotes and list items begin on a line. */
function containers(line: string): number {
  // A rule may look like a list of many levels.
  if (/^[ \t]*(?:[-*][ \t]*)+$/.test(line) && new Set(line.replace(/[ \t]/g, "")).size === 1) {
    return 0;
  }
  const marker = /[ \t]*(?:>|(?:[-+*]|\d{1,9}[.)])(?=[ \t]|$))/y;
  let count = 0;
  while (count <= MOST_CONTAINERS && marker.test(line)) {
    count += 1;
  }
  return count;
}
