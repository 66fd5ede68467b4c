// Making elements. Everything on the page is made here or by the Markdown renderer; text becomes text nodes, never markup.

export type Child = Node | string | null | undefined | false;

type Value = string | number | boolean | null | undefined | ((event: never) => void);

/** Attributes by name; `class`, and listeners as `onclick` and the like. False, null and undefined leave one out. */
export type Properties = Readonly<Record<string, Value>>;

export function make<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  properties: Properties = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  apply(element, properties);
  fill(element, children);
  return element;
}

const SVG = "http://www.w3.org/2000/svg";

export function makeSvg(tag: string, properties: Properties = {}, ...children: Child[]): SVGElement {
  const element = document.createElementNS(SVG, tag) as SVGElement;
  apply(element, properties);
  fill(element, children);
  return element;
}

/** Puts children in the place of whatever an element has. */
export function refill(element: Element, ...children: Child[]): void {
  element.replaceChildren();
  fill(element, children);
}

function fill(element: Element, children: readonly Child[]): void {
  for (const child of children) {
    if (child !== null && child !== undefined && child !== false) {
      element.append(child);
    }
  }
}

function apply(element: Element, properties: Properties): void {
  for (const [name, value] of Object.entries(properties)) {
    if (typeof value === "function") {
      element.addEventListener(name.slice(2), value as EventListener);
    } else if (value === true) {
      element.setAttribute(name, "");
    } else if (value !== false && value !== null && value !== undefined) {
      element.setAttribute(name, String(value));
    }
  }
}

/** Short facts in a row, with dots between them. */
export function facts(words: readonly (string | undefined)[]): Child[] {
  const given = words.filter((word) => word !== undefined && word !== "");
  return given.flatMap((word, index) => [index > 0 && " · ", make("span", { class: "fact" }, word)]);
}

/** Saves text as a file on the user's disk. */
export function saveFile(name: string, content: Blob): void {
  const url = URL.createObjectURL(content);
  const link = make("a", { href: url, download: name });
  link.click();
  // The browser has taken hold of the file by then.
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}

/** Asks the user for files; none if they think better of it. */
export function pickFiles(accept: string, multiple: boolean): Promise<File[]> {
  return new Promise((resolve) => {
    const input = make("input", { type: "file", accept, multiple, class: "hidden-input", "aria-label": "File", tabindex: -1 });
    const finish = () => {
      resolve([...(input.files ?? [])]);
      input.remove();
    };
    input.addEventListener("change", finish);
    input.addEventListener("cancel", finish);
    document.body.append(input);
    input.click();
  });
}
