// Markdown as a value: what the parser gives and the renderer takes.

export type Inline =
  | { kind: "text"; text: string }
  | { kind: "code"; text: string }
  | { kind: "strong" | "emphasis" | "deleted"; content: Inline[] }
  | { kind: "link"; href: string; content: Inline[] }
  | { kind: "break" };

export type Alignment = "left" | "center" | "right" | undefined;

export interface ListItem {
  blocks: Block[];
  /** Of an item with a box: whether it is ticked. */
  ticked?: boolean;
}

export type Block =
  | { kind: "paragraph"; content: Inline[] }
  | { kind: "heading"; level: number; content: Inline[] }
  | { kind: "code"; language: string; text: string }
  | { kind: "list"; ordered: boolean; start: number; items: ListItem[] }
  | { kind: "quote"; blocks: Block[] }
  | { kind: "table"; alignments: Alignment[]; head: Inline[][]; rows: Inline[][][] }
  | { kind: "rule" };

/** A block of the outermost level with the text it came from, by which it is known again while a reply grows. */
export interface TopBlock {
  block: Block;
  source: string;
  /** Where in the text it begins. */
  at: number;
}
