// The interface that the views had before they were Preact components. It goes when they are ported.

import { h, render } from "preact";
import { Markdown } from "./markdown";

/** Milliseconds without new text after which it counts as complete. */
const COMPLETE_AFTER = 300;

export class MarkdownStream {
  readonly #target: HTMLElement;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(target: HTMLElement, _options: unknown) {
    this.#target = target;
  }

  update(text: string): void {
    clearTimeout(this.#timer);
    this.#show(text, true);
    this.#timer = setTimeout(() => this.#show(text, false), COMPLETE_AFTER);
  }

  #show(text: string, growing: boolean): void {
    render(h(Markdown, { text, growing }), this.#target);
  }
}
