// Markdown within a line: emphasis, code, links.
//
// One pass over the text, helped by two tables made beforehand (where brackets and runs of backticks end), so that time
// grows with the length of the text whatever the text is.

import { safeAddress } from "./address";
import type { Inline } from "./types";

/** Nesting beyond this is shown as it was written. */
const DEEPEST = 16;

const PUNCTUATION = /[\p{P}\p{S}]/u;
const ESCAPABLE = /[!-/:-@[-`{-~]/;
const ENTITIES: Readonly<Record<string, string>> = {
  "&amp;": "&",
  "&lt;": "<",
  "&gt;": ">",
  "&quot;": '"',
  "&#39;": "'",
  "&nbsp;": "\u00a0",
};

/** A run of `*`, `_` or `~` that may yet become emphasis. */
interface Run {
  kind: "run";
  mark: string;
  length: number;
  opens: boolean;
  closes: boolean;
}

type Item = Inline | Run;

export function parseInline(text: string, depth = 0): Inline[] {
  return depth > DEEPEST ? [{ kind: "text", text }] : new InlineParser(text, depth).parse();
}

class InlineParser {
  readonly #text: string;
  readonly #depth: number;
  readonly #brackets: Map<number, number>;
  readonly #ticks: Map<number, TickRuns>;
  readonly #items: Item[] = [];
  #at = 0;
  #plain = "";

  constructor(text: string, depth: number) {
    this.#text = text;
    this.#depth = depth;
    this.#brackets = matchingBrackets(text);
    this.#ticks = tickRuns(text);
  }

  parse(): Inline[] {
    while (this.#at < this.#text.length) {
      this.#step(this.#text[this.#at] as string);
    }
    this.#flush();
    return emphasise(this.#items);
  }

  #step(char: string): void {
    switch (char) {
      case "\\":
        return this.#escape();
      case "`":
        return this.#code();
      case "*":
      case "_":
      case "~":
        return this.#run(char);
      case "!":
        // A picture would be fetched from wherever the text says; its description links to it instead.
        return this.#link(this.#at + 1) ? undefined : this.#literal(1);
      case "[":
        return this.#link(this.#at) ? undefined : this.#literal(1);
      case "<":
        return this.#angle();
      case "&":
        return this.#entity();
      case "h":
        return this.#bare();
      case "\n":
        return this.#newline();
      default:
        return this.#literal(1);
    }
  }

  #literal(length: number): void {
    this.#plain += this.#text.slice(this.#at, this.#at + length);
    this.#at += length;
  }

  #flush(): void {
    if (this.#plain !== "") {
      this.#items.push({ kind: "text", text: this.#plain });
      this.#plain = "";
    }
  }

  #push(item: Item, length: number): void {
    this.#flush();
    this.#items.push(item);
    this.#at += length;
  }

  #escape(): void {
    const next = this.#text[this.#at + 1];
    if (next === "\n") {
      this.#push({ kind: "break" }, 2);
    } else if (next !== undefined && ESCAPABLE.test(next)) {
      this.#plain += next;
      this.#at += 2;
    } else {
      this.#literal(1);
    }
  }

  #newline(): void {
    const hard = this.#plain.endsWith("  ");
    this.#plain = this.#plain.trimEnd();
    if (hard) {
      this.#push({ kind: "break" }, 1);
    } else {
      this.#flush();
      this.#plain = "\n";
      this.#at += 1;
    }
  }

  #code(): void {
    const length = runLength(this.#text, this.#at);
    const start = this.#at + length;
    const end = nextRun(this.#ticks.get(length), start);
    if (end === undefined) {
      return this.#literal(length);
    }
    let text = this.#text.slice(start, end).replaceAll("\n", " ");
    if (text.startsWith(" ") && text.endsWith(" ") && text.trim() !== "") {
      text = text.slice(1, -1);
    }
    this.#push({ kind: "code", text }, end + length - this.#at);
  }

  #run(mark: string): void {
    const length = runLength(this.#text, this.#at);
    if (mark === "~" && length !== 2) {
      return this.#literal(length);
    }
    const before = this.#text[this.#at - 1] ?? " ";
    const after = this.#text[this.#at + length] ?? " ";
    const [spaceBefore, spaceAfter] = [/\s/.test(before), /\s/.test(after)];
    const [signBefore, signAfter] = [PUNCTUATION.test(before), PUNCTUATION.test(after)];
    const left = !spaceAfter && (!signAfter || spaceBefore || signBefore);
    const right = !spaceBefore && (!signBefore || spaceAfter || signAfter);
    // An underscore within a word is part of a name, not emphasis.
    const opens = left && (mark !== "_" || !right || signBefore);
    const closes = right && (mark !== "_" || !left || signAfter);
    if (!opens && !closes) {
      return this.#literal(length);
    }
    this.#push({ kind: "run", mark, length, opens, closes }, length);
  }

  /** `[text](address)`, whose bracket is at `open`. False if it is not one. */
  #link(open: number): boolean {
    const close = this.#text[open] === "[" ? this.#brackets.get(open) : undefined;
    if (close === undefined || this.#text[close + 1] !== "(") {
      return false;
    }
    const target = /^\(\s*(?!\s)(?:<([^<>\n]*)>|([^\s()]*(?:\([^\s()]*\)[^\s()]*)*))(?:\s+(?!\s)(?:"[^"\n]*"|'[^'\n]*'))?\s*\)/.exec(
      this.#text.slice(close + 1, close + 2100),
    );
    if (!target) {
      return false;
    }
    const label = this.#text.slice(open + 1, close);
    const href = safeAddress(target[1] ?? target[2] ?? "");
    const content = parseInline(label, this.#depth + 1).flatMap(withoutLinks);
    this.#flush();
    if (href === undefined) {
      this.#items.push(...content);
    } else {
      this.#items.push({ kind: "link", href, content: content.length > 0 ? content : [{ kind: "text", text: href }] });
    }
    this.#at = close + 1 + target[0].length;
    return true;
  }

  /** `<https://…>`. Anything else in angle brackets is text: there is no HTML here. */
  #angle(): void {
    const found = /^<([a-z]+:[^\s<>]{1,2000}|[^\s<>@:]{1,200}@[^\s<>@]{1,200})>/i.exec(this.#text.slice(this.#at, this.#at + 2100));
    const text = found?.[1];
    const href = text === undefined ? undefined : safeAddress(text.includes(":") ? text : `mailto:${text}`);
    if (!found || text === undefined || href === undefined) {
      return this.#literal(1);
    }
    this.#push({ kind: "link", href, content: [{ kind: "text", text }] }, found[0].length);
  }

  #entity(): void {
    const found = /^&(?:amp|lt|gt|quot|#39|nbsp);/.exec(this.#text.slice(this.#at, this.#at + 8));
    if (!found) {
      return this.#literal(1);
    }
    this.#plain += ENTITIES[found[0]] as string;
    this.#at += found[0].length;
  }

  /** An address that stands in the text as it is. */
  #bare(): void {
    const before = this.#text[this.#at - 1];
    const ahead = this.#text.slice(this.#at, this.#at + 8);
    if ((before !== undefined && /[\p{L}\p{N}_]/u.test(before)) || !/^https?:\/\//.test(ahead)) {
      return this.#literal(1);
    }
    const found = /^https?:\/\/[^\s<>"`]{1,2000}/.exec(this.#text.slice(this.#at, this.#at + 2020));
    let text = found?.[0] ?? "";
    // The sentence's own signs are not part of the address, nor is a bracket that was opened before it.
    let unopened = text.split(")").length - text.split("(").length;
    let end = text.length;
    for (; end > 0; end--) {
      const last = text[end - 1] as string;
      if (last === ")" && unopened > 0) {
        unopened -= 1;
      } else if (!/[.,;:!?'*_~\]]/.test(last)) {
        break;
      }
    }
    text = text.slice(0, end);
    const href = safeAddress(text);
    if (href === undefined || /^https?:\/*$/.test(text)) {
      return this.#literal(1);
    }
    this.#push({ kind: "link", href, content: [{ kind: "text", text }] }, text.length);
  }
}

/** Pairs the runs of marks; those that find no partner are text. */
function emphasise(items: readonly Item[]): Inline[] {
  const stack: Item[] = [];
  /** For each mark: below this nothing opens. Keeps hopeless searches from being repeated. */
  const floors = new Map<string, number>();
  const depths = new Map<Item, number>();
  for (const item of items) {
    if (item.kind !== "run") {
      stack.push(item);
      continue;
    }
    const run = { ...item };
    while (run.closes && run.length > 0) {
      const at = lastOpener(stack, run, floors.get(run.mark) ?? 0);
      if (at < 0) {
        floors.set(run.mark, stack.length);
        break;
      }
      const opener = stack[at] as Run;
      const used = run.mark === "~" ? 2 : Math.min(2, opener.length, run.length);
      const kind = run.mark === "~" ? "deleted" : used === 2 ? "strong" : "emphasis";
      const depth = 1 + stack.slice(at + 1).reduce((deepest, inner) => Math.max(deepest, depths.get(inner) ?? 0), 0);
      if (depth > DEEPEST) {
        floors.set(run.mark, stack.length);
        break;
      }
      const content = stack.splice(at + 1).map(asText);
      for (const [mark, floor] of floors) {
        floors.set(mark, Math.min(floor, at));
      }
      opener.length -= used;
      run.length -= used;
      if (opener.length === 0) {
        stack.pop();
      }
      const wrapped: Inline = { kind, content: joined(content) };
      depths.set(wrapped, depth);
      stack.push(wrapped);
    }
    if (run.length > 0) {
      stack.push(run.opens ? run : asText(run));
    }
  }
  return joined(stack.map(asText));
}

function lastOpener(stack: readonly Item[], run: Run, floor: number): number {
  for (let at = stack.length - 1; at >= floor; at--) {
    const item = stack[at] as Item;
    if (item.kind === "run" && item.opens && item.mark === run.mark) {
      return at;
    }
  }
  return -1;
}

function asText(item: Item): Inline {
  return item.kind === "run" ? { kind: "text", text: item.mark.repeat(item.length) } : item;
}

function joined(items: readonly Inline[]): Inline[] {
  const result: Inline[] = [];
  for (const item of items) {
    const last = result.at(-1);
    if (item.kind === "text" && last?.kind === "text") {
      result[result.length - 1] = { kind: "text", text: last.text + item.text };
    } else {
      result.push(item);
    }
  }
  return result;
}

/** A link cannot stand in a link. */
function withoutLinks(item: Inline): Inline[] {
  switch (item.kind) {
    case "link":
      return item.content;
    case "strong":
    case "emphasis":
    case "deleted":
      return [{ ...item, content: item.content.flatMap(withoutLinks) }];
    default:
      return [item];
  }
}

function runLength(text: string, at: number): number {
  let end = at + 1;
  while (text[end] === text[at]) {
    end += 1;
  }
  return end - at;
}

/** Where each opened bracket is closed. */
function matchingBrackets(text: string): Map<number, number> {
  const found = new Map<number, number>();
  const open: number[] = [];
  for (let at = 0; at < text.length; at++) {
    const char = text[at];
    if (char === "\\") {
      at += 1;
    } else if (char === "[") {
      open.push(at);
    } else if (char === "]") {
      const start = open.pop();
      if (start !== undefined) {
        found.set(start, at);
      }
    }
  }
  return found;
}

/** Where runs of backticks of one length are, and which of them was asked for last. */
interface TickRuns {
  positions: number[];
  next: number;
}

function tickRuns(text: string): Map<number, TickRuns> {
  const runs = new Map<number, TickRuns>();
  for (const { 0: run, index } of text.matchAll(/`+/g)) {
    const list = runs.get(run.length);
    if (list) {
      list.positions.push(index);
    } else {
      runs.set(run.length, { positions: [index], next: 0 });
    }
  }
  return runs;
}

/** The first run from `start` on. Questions come in order, so what lies behind is never looked at again. */
function nextRun(runs: TickRuns | undefined, start: number): number | undefined {
  if (!runs) {
    return undefined;
  }
  while ((runs.positions[runs.next] ?? Number.POSITIVE_INFINITY) < start) {
    runs.next += 1;
  }
  return runs.positions[runs.next];
}
