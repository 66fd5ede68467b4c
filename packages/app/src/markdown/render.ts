// Markdown as nodes of the page. Text becomes text nodes and nothing else, so whatever a model writes, nothing of it runs
// and nothing is fetched for it.

import type { Alignment, Block, Inline, ListItem } from "./types";

/** What the renderer needs from outside; a test brings its own document. */
export interface RenderOptions {
  document: Document;
  /** Called with the text of a code block whose button is pressed. */
  onCopy: (text: string, button: HTMLButtonElement) => void;
}

const INLINE_TAGS = { strong: "strong", emphasis: "em", deleted: "del" } as const;

/** A reply stands below the page's own headings. */
const HEADING_OFFSET = 2;

export function renderBlock(block: Block, options: RenderOptions): HTMLElement {
  const { document } = options;
  switch (block.kind) {
    case "paragraph":
      return fill(document.createElement("p"), block.content, options);
    case "heading": {
      const level = Math.min(6, block.level + HEADING_OFFSET);
      return fill(document.createElement(`h${level}`), block.content, options);
    }
    case "code":
      return codeBlock(block.language, block.text, options);
    case "quote": {
      const quote = document.createElement("blockquote");
      quote.append(...block.blocks.map((inner) => renderBlock(inner, options)));
      return quote;
    }
    case "list": {
      const list = document.createElement(block.ordered ? "ol" : "ul");
      if (block.ordered && block.start !== 1) {
        list.setAttribute("start", String(block.start));
      }
      list.append(...block.items.map((item) => listItem(item, options)));
      return list;
    }
    case "table":
      return table(block.alignments, block.head, block.rows, options);
    case "rule":
      return document.createElement("hr");
  }
}

function listItem({ blocks, ticked }: ListItem, options: RenderOptions): HTMLElement {
  const { document } = options;
  const item = document.createElement("li");
  if (ticked !== undefined) {
    const box = document.createElement("input");
    box.setAttribute("type", "checkbox");
    box.setAttribute("disabled", "");
    box.setAttribute("aria-label", ticked ? "done" : "not done");
    if (ticked) {
      box.setAttribute("checked", "");
    }
    item.className = "task";
    item.append(box);
  }
  const [first, ...rest] = blocks;
  if (first?.kind === "paragraph") {
    // The usual item is one sentence, and stands without the margins of a paragraph.
    fill(item, first.content, options);
  } else if (first) {
    item.append(renderBlock(first, options));
  }
  item.append(...rest.map((block) => renderBlock(block, options)));
  return item;
}

function codeBlock(language: string, text: string, { document, onCopy }: RenderOptions): HTMLElement {
  const figure = document.createElement("figure");
  figure.className = "code-block";
  const bar = document.createElement("figcaption");
  const name = document.createElement("span");
  name.append(document.createTextNode(language || "text"));
  const button = document.createElement("button");
  button.setAttribute("type", "button");
  button.className = "copy";
  button.setAttribute("aria-label", language ? `Copy the ${language} code` : "Copy the code");
  button.append(document.createTextNode("Copy"));
  button.addEventListener("click", () => onCopy(text, button));
  bar.append(name, button);
  const pre = document.createElement("pre");
  // Wide code scrolls; a keyboard must get there as well.
  pre.setAttribute("tabindex", "0");
  const code = document.createElement("code");
  code.append(document.createTextNode(text));
  pre.append(code);
  figure.append(bar, pre);
  return figure;
}

function table(alignments: Alignment[], head: Inline[][], rows: Inline[][][], options: RenderOptions): HTMLElement {
  const { document } = options;
  const row = (cells: Inline[][], tag: "th" | "td") => {
    const line = document.createElement("tr");
    cells.forEach((content, column) => {
      const cell = document.createElement(tag);
      if (tag === "th") {
        cell.setAttribute("scope", "col");
      }
      const alignment = alignments[column];
      if (alignment) {
        cell.className = `align-${alignment}`;
      }
      line.append(fill(cell, content, options));
    });
    return line;
  };
  const element = document.createElement("table");
  const top = document.createElement("thead");
  top.append(row(head, "th"));
  const body = document.createElement("tbody");
  body.append(...rows.map((cells) => row(cells, "td")));
  element.append(top, body);
  const frame = document.createElement("div");
  frame.className = "table-frame";
  frame.setAttribute("tabindex", "0");
  frame.setAttribute("role", "region");
  frame.setAttribute("aria-label", "Table");
  frame.append(element);
  return frame;
}

function fill<T extends HTMLElement>(element: T, content: readonly Inline[], options: RenderOptions): T {
  element.append(...content.map((item) => inline(item, options)));
  return element;
}

function inline(item: Inline, options: RenderOptions): Node {
  const { document } = options;
  switch (item.kind) {
    case "text":
      return document.createTextNode(item.text);
    case "break":
      return document.createElement("br");
    case "code": {
      const code = document.createElement("code");
      code.append(document.createTextNode(item.text));
      return code;
    }
    case "link": {
      const link = document.createElement("a");
      link.setAttribute("href", item.href);
      link.setAttribute("target", "_blank");
      link.setAttribute("rel", "noopener noreferrer nofollow");
      return fill(link, item.content, options);
    }
    default:
      return fill(document.createElement(INLINE_TAGS[item.kind]), item.content, options);
  }
}
