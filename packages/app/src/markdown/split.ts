// Divides Markdown into pieces that can be parsed one by one, in one pass over its lines.
//
// A Markdown parser takes more than linear time for some texts, and a growing reply would be parsed from its beginning for each
// token. Both are solved by pieces of limited length: the time for a piece has an upper limit, so the time for a text is proportional
// to its length, and while a text grows only its last piece is parsed again.
//
// A piece ends where the parser could not connect the next line to it: at a blank line (unless a list or indented code may go on
// after it), at a heading, at a code fence. A block that is longer than a piece is divided between list items, table rows or lines,
// and its pieces are joined again after they were parsed. Fenced code needs no parser, so the splitter reads it itself.

import {
  closesFence,
  delimiterColumns,
  indentation,
  isBlank,
  isHeading,
  isQuote,
  isUnderline,
  itemContent,
  openingFence,
  type Fence,
} from "./lines";

/** Characters that a piece has at least, if more text follows: a call of the parser has a cost of its own. */
const SHORTEST = 500;
/** Characters after which a long block is divided at the next list item, table row or line. */
export const LONG = 3000;
/** Characters after which a block that cannot be divided is shown as plain text from there on. */
export const LONGEST = 8000;
/** Tables with more columns are not divided: the head is repeated for each piece. */
const MOST_COLUMNS = 100;

/** How the source of a piece is to be read. */
export type Kind =
  /** As Markdown. */
  | "markdown"
  /** As the inside of a paragraph: the piece begins in the middle of a line. */
  | "inline"
  /** As rows of a table with this many columns, whose head is in a piece before. */
  | { columns: number }
  /** As the text of a fenced code block. */
  | { info: string; closed: boolean }
  /** Not at all. */
  | "plain";

export interface Piece {
  kind: Kind;
  source: string;
  /** Whether the first block of this piece continues the last block of the piece before. */
  joins: boolean;
}

/** The piece that is being read. */
interface Flow {
  kind: Exclude<Kind, { info: string }>;
  source: string;
  joins: boolean;
  /** The column at which the content of the outermost list item begins; 0 outside lists. */
  list: number;
  /** Columns of the table that is being read; 0 outside tables. */
  table: number;
  /** Whether the last line was blank. */
  blank: boolean;
  /** Whether the last line that was not blank may be indented code. */
  indented: boolean;
  /** Whether the last block is complete, whatever follows. */
  complete: boolean;
}

export class Splitter {
  #flow: Flow | undefined;
  #fence: (Fence & { source: string; joins: boolean }) | undefined;
  /** The last line so far, if it was longer than a piece, and the next text belongs to it. */
  #inLine = false;
  #pieces: Piece[] = [];

  clone(): Splitter {
    const copy = new Splitter();
    copy.#flow = this.#flow && { ...this.#flow };
    copy.#fence = this.#fence && { ...this.#fence };
    copy.#inLine = this.#inLine;
    return copy;
  }

  /** Gives the pieces that are finished since the last call. */
  take(): Piece[] {
    const pieces = this.#pieces;
    this.#pieces = [];
    return pieces;
  }

  /** Ends the text, and gives the pieces since the last call of `take`. */
  end(): Piece[] {
    this.#closeFlow();
    this.#closeFence(false);
    return this.take();
  }

  /** Reads one line, or a part of a line that is longer than a piece; `ended` tells whether a line break follows. */
  read(line: string, ended: boolean): void {
    const text = ended ? `${line}\n` : line;
    if (this.#inLine) {
      this.#readRest(text);
    } else if (this.#fence) {
      this.#readCode(line, text);
    } else {
      this.#readLine(line, text);
    }
    this.#inLine = !ended;
  }

  /** Text that continues a line. */
  #readRest(text: string): void {
    if (this.#fence) {
      this.#addCode(text);
    } else if (this.#flow && (this.#flow.list > 0 || this.#flow.kind === "plain" || isQuote(this.#flow.source))) {
      this.#add(text);
    } else {
      this.#closeFlow();
      this.#flow = newFlow({ kind: "inline", joins: true, source: text });
    }
  }

  #readCode(line: string, text: string): void {
    const fence = this.#fence as Fence;
    if (closesFence(line, fence)) {
      this.#closeFence(true);
    } else {
      let spaces = 0;
      while (spaces < fence.indent && line[spaces] === " ") {
        spaces += 1;
      }
      this.#addCode(text.slice(spaces));
    }
  }

  #addCode(text: string): void {
    const fence = this.#fence as Fence & { source: string; joins: boolean };
    fence.source += text;
    if (fence.source.length > LONG) {
      this.#pieces.push({ kind: { info: fence.info, closed: false }, source: fence.source, joins: fence.joins });
      fence.source = "";
      fence.joins = true;
    }
  }

  #readLine(line: string, text: string): void {
    if (isBlank(line)) {
      return this.#readBlank(text);
    }
    const indent = indentation(line);
    const content = indent < 4 ? itemContent(line) : undefined;
    const inItem = this.#flow !== undefined && this.#flow.list > 0 && indent >= this.#flow.list;
    const fence = inItem ? undefined : openingFence(line);
    const heading = !inItem && isHeading(line);
    if (this.#flow && (fence || heading || this.#endsBefore(line, indent, inItem, content !== undefined))) {
      this.#boundary(fence !== undefined);
    }
    if (fence) {
      this.#fence = { ...fence, source: "", joins: false };
      return;
    }
    this.#divide(line, text, indent, inItem, content);
    const flow = (this.#flow ??= newFlow({}));
    if (flow.kind === "markdown" && !inItem) {
      if (content !== undefined) {
        flow.list = content;
      } else if (flow.list === 0 && flow.table === 0 && !flow.blank && flow.source !== "") {
        flow.table = delimiterColumns(line) ?? 0;
      }
    }
    flow.blank = false;
    flow.indented = indent >= 4;
    flow.complete = heading;
    this.#add(text);
  }

  #readBlank(text: string): void {
    const flow = this.#flow;
    // Outside lists and code, two blank lines mean the same as one.
    if (flow && (!flow.blank || flow.list > 0 || flow.indented)) {
      this.#add(text);
      (this.#flow as Flow).blank = true;
    }
  }

  /** Whether no block of the piece can go on with this line. */
  #endsBefore(line: string, indent: number, inItem: boolean, item: boolean): boolean {
    const flow = this.#flow as Flow;
    if (flow.complete) {
      return true;
    }
    if (flow.blank) {
      const goesOn = inItem || indent >= 4 || (item && flow.list > 0);
      return flow.kind === "markdown" ? !goesOn : flow.kind === "plain" ? !inItem : true;
    }
    return typeof flow.kind === "object" && (item || isQuote(line));
  }

  /** Divides a block that is too long, where it can be divided before this line. */
  #divide(line: string, text: string, indent: number, inItem: boolean, content: number | undefined): void {
    const flow = this.#flow;
    if (!flow || flow.source.length + text.length <= LONG || flow.kind === "plain") {
      return;
    }
    const next = (kind: Flow["kind"], joins: boolean) => {
      const { list, table, blank } = flow;
      this.#closeFlow();
      this.#flow = newFlow({ kind, joins, list, table, blank });
    };
    if (flow.list > 0) {
      if (content !== undefined && !inItem) {
        next("markdown", true);
      }
    } else if (flow.table > 0 || typeof flow.kind === "object") {
      const columns = typeof flow.kind === "object" ? flow.kind.columns : flow.table;
      next(columns > MOST_COLUMNS ? "plain" : { columns }, columns <= MOST_COLUMNS);
    } else if (isQuote(line)) {
      if (/\n {0,3}>[ \t]*\n$/.test(flow.source.slice(-20)) && /^ {0,3}> ?[^ \t\d*+>-]/.test(line)) {
        next("markdown", true);
      }
    } else if (!isUnderline(line) && delimiterColumns(line) === undefined && (indent < 4 || flow.source.startsWith("    "))) {
      next("markdown", !flow.blank || indent >= 4);
    }
  }

  #add(text: string): void {
    const flow = this.#flow as Flow;
    flow.source += text;
    if (flow.kind === "plain" ? flow.source.length > LONG : flow.source.length > LONGEST) {
      const joins = flow.kind === "plain";
      this.#closeFlow();
      this.#flow = newFlow({ kind: "plain", joins, list: flow.list });
    }
  }

  /** A place where nothing before affects what follows. The piece ends here if it is long enough, or if it must. */
  #boundary(must: boolean): void {
    const flow = this.#flow as Flow;
    if (must || flow.kind !== "markdown" || flow.source.length >= SHORTEST) {
      this.#closeFlow();
    } else {
      this.#flow = { ...flow, list: 0, table: 0, blank: true, complete: false };
    }
  }

  #closeFlow(): void {
    const flow = this.#flow;
    this.#flow = undefined;
    if (flow && flow.source !== "") {
      this.#pieces.push({ kind: flow.kind, source: flow.source, joins: flow.joins });
    }
  }

  #closeFence(closed: boolean): void {
    const fence = this.#fence;
    this.#fence = undefined;
    if (fence) {
      this.#pieces.push({ kind: { info: fence.info, closed }, source: fence.source, joins: fence.joins });
    }
  }
}

function newFlow(given: Partial<Flow>): Flow {
  return { kind: "markdown", source: "", joins: false, list: 0, table: 0, blank: false, indented: false, complete: false, ...given };
}
