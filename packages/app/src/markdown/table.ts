// Tables of Markdown: a row of names, a row of dashes, rows of cells.

import { parseInline } from "./inline";
import type { Alignment, Block } from "./types";

const DASHES = /^:?-+:?$/;

/** The table that begins at a line, and how many lines it has; undefined if none begins there. */
export function parseTable(lines: readonly string[], at: number): { block: Block; length: number } | undefined {
  const [first, second] = [lines[at], lines[at + 1]];
  if (!first?.includes("|") || !second?.includes("-") || !second.includes("|")) {
    return undefined;
  }
  const dashes = cells(second);
  const head = cells(first);
  if (head.length !== dashes.length || !dashes.every((cell) => DASHES.test(cell))) {
    return undefined;
  }
  const rows: string[][] = [];
  let end = at + 2;
  for (; end < lines.length; end++) {
    const line = lines[end] as string;
    if (line.trim() === "" || !line.includes("|")) {
      break;
    }
    rows.push(cells(line));
  }
  const width = head.length;
  const block: Block = {
    kind: "table",
    alignments: dashes.map(alignment),
    head: head.map((cell) => parseInline(cell)),
    // Rows with too few cells are filled up; what is too much has no column to stand in.
    rows: rows.map((row) => Array.from({ length: width }, (_, column) => parseInline(row[column] ?? ""))),
  };
  return { block, length: end - at };
}

function alignment(dashes: string): Alignment {
  const [left, right] = [dashes.startsWith(":"), dashes.endsWith(":")];
  return left && right ? "center" : right ? "right" : left ? "left" : undefined;
}

/** The cells of a row. A bar after a backslash, or within code, is text. */
function cells(line: string): string[] {
  const text = line.trim().replace(/^\|/, "");
  const found: string[] = [];
  let cell = "";
  let inCode = false;
  for (let at = 0; at < text.length; at++) {
    const char = text[at] as string;
    if (char === "\\" && text[at + 1] === "|") {
      cell += "|";
      at += 1;
    } else if (char === "|" && !inCode) {
      found.push(cell.trim());
      cell = "";
    } else {
      // Ticks without partner would swallow the rest of the row.
      if (char === "`") {
        inCode = !inCode && text.indexOf("`", at + 1) >= 0;
      }
      cell += char;
    }
  }
  if (cell.trim() !== "" || !text.endsWith("|")) {
    found.push(cell.trim());
  }
  return found;
}
