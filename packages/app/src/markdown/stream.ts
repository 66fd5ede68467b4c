// Markdown that grows: what is finished keeps its nodes, so that a selection in it stays, and is not read again. A new word
// costs as much as the last two blocks are long, however much stands before them: that is compared, and no more.

import { parse, withNewlines } from "./parse";
import { renderBlock, type RenderOptions } from "./render";

/** Blocks at the end that what comes next may still change: the one that grows, and one that it may turn out to belong to. */
const OPEN = 2;

export class MarkdownStream {
  readonly #target: HTMLElement;
  readonly #options: RenderOptions;
  readonly #shown: { source: string; node: HTMLElement }[] = [];
  #text = "";
  /** How many blocks are finished, and where in the text the first one begins that is not. */
  #finished = 0;
  #at = 0;

  constructor(target: HTMLElement, options: RenderOptions) {
    this.#target = target;
    this.#options = options;
  }

  /** Shows `given`, whatever was shown before. */
  update(given: string): void {
    const text = withNewlines(given);
    if (!text.startsWith(this.#text)) {
      this.#finished = 0;
      this.#at = 0;
    }
    this.#text = text;
    const blocks = parse(text.slice(this.#at));
    let same = 0;
    while (same < blocks.length && blocks[same]?.source === this.#shown[this.#finished + same]?.source) {
      same += 1;
    }
    this.#shown.splice(this.#finished + same).forEach(({ node }) => node.remove());
    for (const { block, source } of blocks.slice(same)) {
      const node = renderBlock(block, this.#options);
      this.#target.append(node);
      this.#shown.push({ source, node });
    }
    const open = blocks[blocks.length - OPEN];
    if (open) {
      this.#finished += blocks.length - OPEN;
      this.#at += open.at;
    }
  }
}
