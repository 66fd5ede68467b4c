// The Markdown component in the fake document.

import { h, render } from "preact";
import { Markdown } from "../../src/markdown/markdown";
import { fakeDocument } from "./fake-document";

export class Page {
  readonly #root = fakeDocument.createElementNS("", "body");

  show(text: string, growing = false): string {
    render(h(Markdown, { text, growing }), this.#root as unknown as Element);
    return this.element.inside;
  }

  /** The element of the component. */
  get element() {
    return this.#root.find("div")[0] as ReturnType<typeof fakeDocument.createElementNS>;
  }
}

/** The text as the page has it. */
export function html(text: string): string {
  return new Page().show(text);
}
