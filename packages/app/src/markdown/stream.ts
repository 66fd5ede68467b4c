// Markdown that grows: what has not changed since the last look keeps its nodes, so that a selection in it stays, and a long
// reply costs no more for each new word than a short one.

import { parse } from "./parse";
import { renderBlock, type RenderOptions } from "./render";

export class MarkdownStream {
  readonly #target: HTMLElement;
  readonly #options: RenderOptions;
  #shown: { source: string; node: HTMLElement }[] = [];

  constructor(target: HTMLElement, options: RenderOptions) {
    this.#target = target;
    this.#options = options;
  }

  /** Shows `text`, whatever was shown before. */
  update(text: string): void {
    const blocks = parse(text);
    let same = 0;
    while (same < blocks.length && blocks[same]?.source === this.#shown[same]?.source) {
      same += 1;
    }
    this.#shown.splice(same).forEach(({ node }) => node.remove());
    for (const { block, source } of blocks.slice(same)) {
      const node = renderBlock(block, this.#options);
      this.#target.append(node);
      this.#shown.push({ source, node });
    }
  }
}
