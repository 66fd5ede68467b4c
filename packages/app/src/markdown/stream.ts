// The interface that the views had before they were Preact components. It goes when they are ported.

import { h, render } from "preact";
import { Markdown } from "./markdown";

export class MarkdownStream {
  readonly #target: HTMLElement;

  constructor(target: HTMLElement, _options: unknown) {
    this.#target = target;
  }

  update(text: string): void {
    // These views do not say whether the text grows, and expect it on the page at once.
    render(h(Markdown, { text }), this.#target);
  }
}
