// One piece of Markdown as a syntax tree, by micromark with the extensions of GitHub that models use.
//
// There is no HTML: its constructs are switched off, so tags are text like any other. Footnotes are left out as well.

import type { Definition, RootContent } from "mdast";
import { fromMarkdown, type Options } from "mdast-util-from-markdown";
import { gfmAutolinkLiteralFromMarkdown } from "mdast-util-gfm-autolink-literal";
import { gfmStrikethroughFromMarkdown } from "mdast-util-gfm-strikethrough";
import { gfmTableFromMarkdown } from "mdast-util-gfm-table";
import { gfmTaskListItemFromMarkdown } from "mdast-util-gfm-task-list-item";
import { gfmAutolinkLiteral } from "micromark-extension-gfm-autolink-literal";
import { gfmStrikethrough } from "micromark-extension-gfm-strikethrough";
import { gfmTable } from "micromark-extension-gfm-table";
import { gfmTaskListItem } from "micromark-extension-gfm-task-list-item";
import { normalizeIdentifier } from "micromark-util-normalize-identifier";
import { isTooIntricate } from "./bounds";
import { mathsSyntax, mathsTree } from "./maths";
import type { Piece } from "./split";

/** Text that is shown as it is, with its line breaks. */
export interface PlainNode {
  type: "plain";
  value: string;
}

export type Node = RootContent | PlainNode;

/** The definitions of links, `[label]: address`, by their normalised label, with their source. */
export type Definitions = Map<string, { node: Definition; source: string }>;

export interface Parsed {
  nodes: Node[];
  /** Labels in square brackets, which are links if they are defined somewhere. */
  labels: Set<string>;
}

/** References in one piece that are looked up; further ones stay text. */
const MOST_LABELS = 50;

const WHOLE: Options = {
  extensions: [
    gfmAutolinkLiteral(),
    gfmStrikethrough({ singleTilde: false }),
    gfmTable(),
    gfmTaskListItem(),
    mathsSyntax,
    { disable: { null: ["htmlFlow", "htmlText"] } },
  ],
  mdastExtensions: [
    // Its transformation searches the finished tree for more addresses, in more than linear time.
    { ...gfmAutolinkLiteralFromMarkdown(), transforms: [] },
    gfmStrikethroughFromMarkdown(),
    gfmTableFromMarkdown(),
    gfmTaskListItemFromMarkdown(),
    mathsTree,
  ],
};

const BLOCKS = ["atxHeading", "blockQuote", "codeFenced", "codeIndented", "definition", "list", "mathsBlock", "setextUnderline", "table", "thematicBreak"];

/** For text from the middle of a line, where nothing begins a block. */
const INLINE: Options = { ...WHOLE, extensions: [...(WHOLE.extensions ?? []), { disable: { null: BLOCKS } }] };

/** The blocks of a piece. New definitions are added to `definitions`, and those it has are used. */
export function parse(piece: Piece, definitions: Definitions): Parsed {
  const { kind, source } = piece;
  if (typeof kind === "object" && "info" in kind) {
    return { nodes: [{ type: "code", lang: languageOf(kind.info), value: source }], labels: new Set() };
  }
  if (kind === "plain" || isTooIntricate(source, typeof kind === "object")) {
    return { nodes: source.trim() === "" ? [] : [{ type: "plain", value: source }], labels: new Set() };
  }
  const labels = labelsIn(source);
  let before = "";
  for (const label of labels) {
    const known = definitions.get(label);
    before += known ? `${known.source}\n\n` : "";
  }
  if (typeof kind === "object") {
    before += `${"|a".repeat(kind.columns)}|\n${"|-".repeat(kind.columns)}|\n`;
  }
  const text = before + source;
  const { children } = fromMarkdown(text, kind === "inline" ? INLINE : WHOLE);
  const nodes: Node[] = [];
  for (const node of children) {
    if (node.type === "definition") {
      define(node, text, definitions);
    } else {
      nodes.push(node);
    }
  }
  return { nodes, labels };
}

/** The first word after the fence, without the escapes it may have. */
function languageOf(info: string): string {
  if (info === "") {
    return "";
  }
  const [node] = fromMarkdown(`~~~ ${info.slice(0, 200)}`).children;
  return (node?.type === "code" && node.lang) || "";
}

function define(node: Definition, text: string, definitions: Definitions): void {
  const { position } = node;
  const label = normalizeIdentifier(node.label ?? node.identifier);
  // The first definition of a label counts.
  if (position && !definitions.has(label)) {
    definitions.set(label, { node, source: text.slice(position.start.offset, position.end.offset) });
  }
}

function labelsIn(source: string): Set<string> {
  const labels = new Set<string>();
  for (const [, label] of source.matchAll(/\[([^[\]]{1,200})\]/g)) {
    labels.add(normalizeIdentifier(label as string));
    if (labels.size === MOST_LABELS) {
      break;
    }
  }
  return labels;
}
