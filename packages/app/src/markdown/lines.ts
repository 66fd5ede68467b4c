// Tests on single lines that the splitter needs. Every pattern is linear: no two neighbouring quantifiers match the same characters.

/** Columns of white space before the first other character; a tab goes to the next multiple of four. */
export function indentation(line: string): number {
  let columns = 0;
  for (let at = 0; at < line.length; at++) {
    const char = line[at];
    if (char === " ") {
      columns += 1;
    } else if (char === "\t") {
      columns += 4 - (columns % 4);
    } else {
      break;
    }
  }
  return columns;
}

export function isBlank(line: string): boolean {
  return /^[ \t]*$/.test(line);
}

export function isHeading(line: string): boolean {
  return /^ {0,3}#{1,6}(?:[ \t]|$)/.test(line);
}

export function isQuote(line: string): boolean {
  return /^ {0,3}>/.test(line);
}

/** A line that could turn the paragraph before it into a heading. */
export function isUnderline(line: string): boolean {
  return /^ {0,3}(?:=+|-+)[ \t]*$/.test(line);
}

export interface Fence {
  mark: string;
  length: number;
  indent: number;
  info: string;
}

/** The line that opens a fenced code block. */
export function openingFence(line: string): Fence | undefined {
  const found = /^( {0,3})(`{3,}(?!`)|~{3,}(?!~))(.*)$/s.exec(line);
  if (!found) {
    return undefined;
  }
  const [, spaces, run, info] = found as unknown as [string, string, string, string];
  if (run.startsWith("`") && info.includes("`")) {
    return undefined;
  }
  return { mark: run.charAt(0), length: run.length, indent: spaces.length, info: info.trim() };
}

export function closesFence(line: string, fence: Fence): boolean {
  const found = /^ {0,3}(`+|~+)[ \t]*$/.exec(line);
  const run = found?.[1];
  return run !== undefined && run.startsWith(fence.mark) && run.length >= fence.length;
}

/** The column at which the content of a list item begins, if the line begins one. */
export function itemContent(line: string): number | undefined {
  const found = /^[ \t]*([-+*]|\d{1,9}[.)])([ \t]|$)/.exec(line);
  if (!found) {
    return undefined;
  }
  const marker = (found[1] as string).length;
  const before = indentation(line);
  const rest = line.slice(line.search(/[^ \t]/) + marker);
  const spaces = indentation(rest);
  // An item that begins with an empty line or with indented code has its content one column after the marker.
  return before + marker + (isBlank(rest) || spaces > 4 ? 1 : spaces);
}

/** The number of columns, if this is the line between the head and the body of a table. */
export function delimiterColumns(line: string): number | undefined {
  if (!/^ {0,3}[|:-][-:| \t]*$/.test(line) || !line.includes("|")) {
    return undefined;
  }
  const cells = line.trim().replace(/^\|/, "").replace(/\|$/, "").split("|");
  return cells.every((cell) => /^:?-+:?$/.test(cell.trim())) ? cells.length : undefined;
}
