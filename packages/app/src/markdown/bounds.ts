// Which pieces the parser may be given. For most texts of one length its work is nearly the same; the exceptions are found here, and
// shown as plain text. Nothing a person writes comes near these limits.

/** Quotes and lists that begin on one line. */
const MOST_CONTAINERS = 12;
/** Opened square brackets in one paragraph that are not closed. */
const DEEPEST_BRACKETS = 24;
/** Runs of `*`, `_` or `~` in one paragraph that may begin or end emphasis. */
const MOST_RUNS = 300;

const SPACE = /\s/;
const WORD = /[\p{L}\p{N}]/u;

/** Whether parsing this piece could take much longer than its length suggests. */
export function isTooIntricate(source: string): boolean {
  let brackets = 0;
  let runs = 0;
  for (const line of source.split("\n")) {
    if (line.trim() === "") {
      // Emphasis and links never cross a blank line.
      brackets = 0;
      runs = 0;
      continue;
    }
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
