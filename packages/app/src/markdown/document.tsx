// A Markdown text that may grow, as Preact nodes.
//
// Finished pieces are parsed once. The nodes of finished blocks are the same objects in every result, and Preact does not look into
// a component whose node is the same as before. So a new token costs as much as the last piece is long, however long the text is.
//
// Links by reference, `[text][label]`, may be defined anywhere. Definitions that come after their use take effect when the text is
// complete: the pieces that use them are then parsed a second time.

import type { ComponentChildren, VNode } from "preact";
import { parse, type Definitions, type Node, type Parsed } from "./parse";
import { CodeBlock } from "./code-block";
import { container, contents, renderBlock, type Context } from "./render";
import { LONG, Splitter, type Piece } from "./split";

/** Blocks in a group; each group is one node for Preact when all its blocks are finished. */
const GROUP = 64;

/** A block, with the parts of it that stand in different pieces. */
interface Block {
  node: Node;
  parts: ComponentChildren[];
  /** The text of a code block. */
  text: string;
  shown: VNode;
}

interface Finished {
  piece: Piece;
  parsed: Parsed;
}

/** Nodes that Preact compares as one. */
function Part({ nodes }: { nodes: ComponentChildren }): VNode {
  return nodes as VNode;
}

export class MarkdownDocument {
  #text = "";
  #splitter = new Splitter();
  /** The last line, which has no line break yet. */
  #line = "";
  #finished: Finished[] = [];
  #definitions: Definitions = new Map();
  /** How many definitions there were when all finished pieces were last parsed with them. */
  #resolved = 0;
  #blocks: Block[] = [];
  #groups: VNode[] = [];

  /** The nodes of `text`, which most often begins with the text of the call before. `growing`: more text will follow. */
  update(text: string, growing: boolean): VNode[] {
    if (!text.startsWith(this.#text)) {
      this.#reset();
    }
    this.#read(text);
    const last = this.#splitter.clone();
    if (this.#line !== "") {
      last.read(this.#line, false);
    }
    const pieces = growing ? withoutOpenMaths(last.end()) : last.end();
    let open = pieces.map((piece) => parse(piece, this.#definitions));
    if (!growing && this.#definitions.size > this.#resolved) {
      this.#resolve();
      open = pieces.map((piece) => parse(piece, this.#definitions));
    }
    const blocks = this.#blocks.slice(this.#groups.length * GROUP);
    pieces.forEach((piece, index) => {
      const closed = typeof piece.kind === "object" && "info" in piece.kind && piece.kind.closed;
      const finished = !growing || closed || index < pieces.length - 1;
      append(blocks, piece, open[index] as Parsed, { definitions: this.#definitions, finished });
    });
    return [...this.#groups, ...grouped(blocks)];
  }

  #reset(): void {
    this.#text = "";
    this.#splitter = new Splitter();
    this.#line = "";
    this.#finished = [];
    this.#definitions = new Map();
    this.#resolved = 0;
    this.#blocks = [];
    this.#groups = [];
  }

  /** Reads the complete lines of the text that is new. */
  #read(text: string): void {
    // A carriage return at the end may be half of a line break.
    const end = text.endsWith("\r") ? text.length - 1 : text.length;
    const lines = (this.#line + text.slice(this.#text.length, end)).replace(/\r\n?/g, "\n").replaceAll("\0", "\uFFFD").split("\n");
    this.#text = end === text.length ? text : text.slice(0, end);
    this.#line = lines.pop() as string;
    for (const line of lines) {
      this.#splitter.read(this.#cut(line), true);
    }
    this.#line = this.#cut(this.#line);
    for (const piece of this.#splitter.take()) {
      const parsed = parse(piece, this.#definitions);
      this.#finished.push({ piece, parsed });
      append(this.#blocks, piece, parsed, { definitions: this.#definitions, finished: true });
    }
    // The last block may yet be continued by the next piece.
    while (this.#blocks.length > (this.#groups.length + 1) * GROUP) {
      const from = this.#groups.length * GROUP;
      this.#groups.push(...grouped(this.#blocks.slice(from, from + GROUP)));
    }
  }

  /** Gives the splitter the beginning of a line that is longer than a piece. What remains may be longer by one piece at most. */
  #cut(line: string): string {
    let at = 0;
    while (line.length - at > LONG) {
      const space = line.lastIndexOf(" ", at + LONG);
      const end = space > at + LONG / 2 ? space : at + LONG;
      this.#splitter.read(line.slice(at, end), false);
      at = end;
    }
    return line.slice(at);
  }

  /** Parses the finished pieces again in which a label is a link now. */
  #resolve(): void {
    this.#resolved = this.#definitions.size;
    this.#blocks = [];
    this.#groups = [];
    this.#finished = this.#finished.map(({ piece, parsed }) => {
      const again = parsed.labels.size > 0 && [...parsed.labels].some((label) => this.#definitions.has(label));
      const result = again ? parse(piece, this.#definitions) : parsed;
      append(this.#blocks, piece, result, { definitions: this.#definitions, finished: true });
      return { piece, parsed: result };
    });
  }
}

/** Adds the blocks of a piece; its first one may belong to the last one before. */
function append(blocks: Block[], piece: Piece, { nodes }: Parsed, context: Context): void {
  nodes.forEach((node, index) => {
    const last = blocks.at(-1);
    if (index === 0 && piece.joins && last && belongs(last.node, node)) {
      blocks[blocks.length - 1] = joined(last, node, piece, context);
    } else {
      blocks.push(made(node, context));
    }
  });
}

function belongs(last: Node, next: Node): boolean {
  if (last.type === "list" && next.type === "list") {
    return last.ordered === next.ordered;
  }
  if (last.type === "heading") {
    return next.type === "paragraph";
  }
  return last.type === next.type && ["paragraph", "table", "blockquote", "code", "plain"].includes(next.type);
}

function made(node: Node, context: Context): Block {
  if (node.type === "code") {
    return codeBlock(node, node.value, context);
  }
  if (node.type === "maths" || node.type === "thematicBreak") {
    return { node, parts: [], text: "", shown: <Part nodes={renderBlock(node, context)} /> };
  }
  return assembled(node, [part(contents(node, context))], context);
}

function joined(block: Block, node: Node, piece: Piece, context: Context): Block {
  if (node.type === "code" && block.node.type === "code") {
    return codeBlock(block.node, block.text + node.value, context);
  }
  const next: ComponentChildren[] = [part(contents(aligned(block.node, node), context))];
  if (node.type === "paragraph" && piece.kind !== "inline") {
    next.unshift("\n");
  }
  return assembled(block.node, [...block.parts, ...next], context);
}

/** Rows whose head is in another piece are aligned as that says. */
function aligned(head: Node, node: Node): Node {
  return head.type === "table" && node.type === "table" ? { ...node, align: head.align } : node;
}

function part(nodes: ComponentChildren): VNode {
  return <Part nodes={nodes} />;
}

function assembled(node: Node, parts: ComponentChildren[], context: Context): Block {
  return { node, parts, text: "", shown: part(container(node, parts, context)) };
}

function codeBlock(node: Node & { type: "code" }, text: string, { finished }: Context): Block {
  const shown = text.endsWith("\n") ? text.slice(0, -1) : text;
  return { node, parts: [], text, shown: part(<CodeBlock language={node.lang ?? ""} text={shown} finished={finished} />) };
}

function grouped(blocks: readonly Block[]): VNode[] {
  const groups: VNode[] = [];
  for (let at = 0; at < blocks.length; at += GROUP) {
    groups.push(part(blocks.slice(at, at + GROUP).map(({ shown }) => shown)));
  }
  return groups;
}

/**
 * Displayed maths that is not closed yet would be read as a paragraph, with lists in it where a line begins with a sign. It is shown
 * as its source instead.
 */
function withoutOpenMaths(pieces: Piece[]): Piece[] {
  const last = pieces.at(-1);
  if (last?.kind !== "markdown") {
    return pieces;
  }
  const { source } = last;
  const dollars = source.split("$$").length % 2 === 0 ? source.lastIndexOf("$$") : -1;
  const bracket = source.lastIndexOf("\\[") > source.lastIndexOf("\\]") ? source.lastIndexOf("\\[") : -1;
  const at = Math.max(dollars, bracket);
  const lineStart = source.lastIndexOf("\n", at) + 1;
  if (at < 0 || !/^[ \t>]*$/.test(source.slice(lineStart, at)) || /\n[ \t>]*\n/.test(source.slice(at))) {
    return pieces;
  }
  const open: Piece = { kind: "plain", source: source.slice(at), joins: false };
  return [...pieces.slice(0, -1), { ...last, source: source.slice(0, lineStart) }, open];
}
