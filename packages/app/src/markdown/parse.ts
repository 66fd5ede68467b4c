// Markdown blocks: paragraphs, headings, lists, quotes, code, tables, rules.
//
// Models write Markdown a little carelessly, so this reads it a little generously: lists may be indented by two, a fence
// that is not closed yet runs to the end. HTML is text.

import { parseInline } from "./inline";
import { parseTable } from "./table";
import type { Block, ListItem, TopBlock } from "./types";

// These are given lines of any length, written by a model that repeats what it read. So no two neighbouring quantifiers may take the
// same characters: the engine would try every way to divide a long run between them.
const FENCE = /^\s*(`{3,}|~{3,}(?!~))([^`]*)$/;
const HEADING = /^ {0,3}(#{1,6})(?:[ \t]+([^ \t].*)?)?$/s;
const RULE = /^ {0,3}(?:(?:\*[ \t]*){3,}|(?:-[ \t]*){3,}|(?:_[ \t]*){3,})$/;
const QUOTE = /^ {0,3}> ?(.*)$/s;
const ITEM = /^([ \t]*)([-*+]|\d{1,9}[.)])(?:([ \t]+)([^ \t].*)?)?$/s;
const BOX = /^\[([ xX])\][ \t]+([^ \t].*)?$/s;

/** Quotes and lists within each other beyond this are text. */
const DEEPEST = 12;

interface Read {
  block: Block;
  length: number;
}

/** A text whose lines end as the parser wants them. */
export function withNewlines(text: string): string {
  return text.replace(/\r\n?/g, "\n");
}

/**
 * The blocks of a text. What stands in one depends on nothing before it, and on nothing after the second line of the block that
 * follows: a table is known by its second line.
 */
export function parse(text: string): TopBlock[] {
  const lines = withNewlines(text).split("\n");
  const found: TopBlock[] = [];
  let at = 0;
  let offset = 0;
  while (at < lines.length) {
    const read = readBlock(lines, at, 0);
    const source = lines.slice(at, at + read.length).join("\n");
    if (read.block) {
      found.push({ block: read.block, source, at: offset });
    }
    at += read.length;
    offset += source.length + 1;
  }
  return found;
}

function parseBlocks(lines: readonly string[], depth: number): Block[] {
  const blocks: Block[] = [];
  let at = 0;
  while (at < lines.length) {
    const read = readBlock(lines, at, depth);
    if (read.block) {
      blocks.push(read.block);
    }
    at += read.length;
  }
  return blocks;
}

function readBlock(lines: readonly string[], at: number, depth: number): Read | { block: undefined; length: number } {
  const line = lines[at] as string;
  if (line.trim() === "") {
    return { block: undefined, length: 1 };
  }
  const heading = HEADING.exec(line);
  if (heading) {
    const text = withoutClosing((heading[2] ?? "").trim());
    return { block: { kind: "heading", level: (heading[1] as string).length, content: parseInline(text) }, length: 1 };
  }
  if (RULE.test(line)) {
    return { block: { kind: "rule" }, length: 1 };
  }
  return (
    readFence(lines, at) ??
    (depth < DEEPEST ? (readQuote(lines, at, depth) ?? readList(lines, at, depth)) : undefined) ??
    parseTable(lines, at) ??
    readParagraph(lines, at, depth)
  );
}

/** A heading without the marks that some repeat after it. */
function withoutClosing(text: string): string {
  let end = text.length;
  while (text[end - 1] === "#") {
    end -= 1;
  }
  return end === 0 || /\s/.test(text[end - 1] as string) ? text.slice(0, end).trimEnd() : text;
}

function readFence(lines: readonly string[], at: number): Read | undefined {
  const line = lines[at] as string;
  const found = FENCE.exec(line);
  if (!found) {
    return undefined;
  }
  const fence = found[1] as string;
  const indent = indentOf(line);
  const language = ((found[2] as string).trim().split(/\s+/)[0] as string).slice(0, 40);
  const text: string[] = [];
  let end = at + 1;
  for (; end < lines.length; end++) {
    const inner = lines[end] as string;
    const mark = inner.trim();
    if (mark.length >= fence.length && mark === (fence[0] as string).repeat(mark.length)) {
      end += 1;
      break;
    }
    text.push(stripIndent(inner, indent));
  }
  return { block: { kind: "code", language, text: text.join("\n") }, length: end - at };
}

function readQuote(lines: readonly string[], at: number, depth: number): Read | undefined {
  if (!QUOTE.test(lines[at] as string)) {
    return undefined;
  }
  const inner: string[] = [];
  let end = at;
  for (; end < lines.length; end++) {
    const line = lines[end] as string;
    const found = QUOTE.exec(line);
    if (found) {
      inner.push(found[1] as string);
    } else if (line.trim() !== "" && inner.at(-1)?.trim() !== "" && !startsBlock(line)) {
      // A line that forgot its mark still belongs to the sentence before it.
      inner.push(line);
    } else {
      break;
    }
  }
  return { block: { kind: "quote", blocks: parseBlocks(inner, depth + 1) }, length: end - at };
}

interface Marker {
  indent: number;
  ordered: boolean;
  sign: string;
  start: number;
  /** Columns up to the item's text. */
  width: number;
  rest: string;
}

function markerOf(line: string): Marker | undefined {
  const found = ITEM.exec(line);
  if (!found || RULE.test(line)) {
    return undefined;
  }
  const mark = found[2] as string;
  const indent = indentOf(line);
  const space = found[3]?.length ?? 0;
  const ordered = mark.length > 1 || /\d/.test(mark);
  return {
    indent,
    ordered,
    sign: mark.at(-1) as string,
    start: ordered ? Number.parseInt(mark, 10) : 0,
    width: indent + mark.length + (space >= 1 && space <= 4 ? space : 1),
    rest: found[4] ?? "",
  };
}

function readList(lines: readonly string[], at: number, depth: number): Read | undefined {
  const first = markerOf(lines[at] as string);
  if (!first) {
    return undefined;
  }
  const items: string[][] = [];
  let marker = first;
  let end = at;
  while (end < lines.length) {
    const line = lines[end] as string;
    const own = markerOf(line);
    const deeper = indentOf(line) >= Math.min(marker.width, marker.indent + 2);
    if (own && !(items.length > 0 && deeper)) {
      if (own.ordered !== first.ordered || own.sign !== first.sign || own.indent < first.indent - 1) {
        break;
      }
      marker = own;
      items.push([own.rest]);
    } else if (line.trim() === "") {
      // A blank line ends the list, unless what follows still belongs to it.
      let later = end + 1;
      while (later < lines.length && (lines[later] as string).trim() === "") {
        later += 1;
      }
      const next = lines[later];
      const goes = next !== undefined && (indentOf(next) >= Math.min(marker.width, marker.indent + 2) || isSibling(next, first));
      if (!goes) {
        break;
      }
      items.at(-1)?.push("");
      end = later;
      continue;
    } else if (deeper) {
      items.at(-1)?.push(stripIndent(line, marker.width));
    } else if (items.at(-1)?.at(-1)?.trim() !== "" && !startsBlock(line)) {
      items.at(-1)?.push(line.trimStart());
    } else {
      break;
    }
    end += 1;
  }
  const block: Block = { kind: "list", ordered: first.ordered, start: first.start, items: items.map((item) => readItem(item, depth)) };
  return { block, length: end - at };
}

function isSibling(line: string, first: Marker): boolean {
  const marker = markerOf(line);
  return marker !== undefined && marker.ordered === first.ordered && marker.sign === first.sign && marker.indent >= first.indent - 1;
}

function readItem(lines: string[], depth: number): ListItem {
  const box = BOX.exec(lines[0] ?? "");
  if (!box) {
    return { blocks: parseBlocks(lines, depth + 1) };
  }
  return { blocks: parseBlocks([box[2] ?? "", ...lines.slice(1)], depth + 1), ticked: box[1] !== " " };
}

function readParagraph(lines: readonly string[], at: number, depth: number): Read {
  let end = at + 1;
  while (end < lines.length) {
    const line = lines[end] as string;
    const interrupts = startsBlock(line) || (depth < DEEPEST && interruptsAsList(line)) || parseTableSoon(lines, end);
    if (line.trim() === "" || interrupts) {
      break;
    }
    end += 1;
  }
  const text = lines.slice(at, end).map((line) => line.trimStart()).join("\n").trimEnd();
  return { block: { kind: "paragraph", content: parseInline(text) }, length: end - at };
}

/** Whether a line begins something else than a paragraph, a list or a table. */
function startsBlock(line: string): boolean {
  return HEADING.test(line) || FENCE.test(line) || QUOTE.test(line) || RULE.test(line);
}

/** A number in the middle of a sentence is no list; one that begins at 1 is. */
function interruptsAsList(line: string): boolean {
  const marker = markerOf(line);
  return marker !== undefined && marker.rest !== "" && (!marker.ordered || marker.start === 1);
}

function parseTableSoon(lines: readonly string[], at: number): boolean {
  return (lines[at] as string).includes("|") && parseTable(lines.slice(at, at + 2), 0) !== undefined;
}

function indentOf(line: string): number {
  let columns = 0;
  for (const char of line) {
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

/** A line without up to so many columns of space at its start. */
function stripIndent(line: string, columns: number): string {
  let at = 0;
  let seen = 0;
  while (seen < columns && (line[at] === " " || line[at] === "\t")) {
    seen += line[at] === "\t" ? 4 - (seen % 4) : 1;
    at += 1;
  }
  return line.slice(at);
}
