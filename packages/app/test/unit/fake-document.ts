// As much of a document as Preact uses, written out as text, so that tests see exactly which nodes would be made.

const escaped = (text: string) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");

/** Elements without content. */
const VOID = new Set(["br", "hr", "input"]);

/** Nodes that were made, moved or changed since the beginning. */
export let domWork = 0;

class FakeNode {
  parentNode: FakeElement | null = null;
  readonly ownerDocument = undefined;

  constructor(readonly nodeType: number) {
    domWork += 1;
  }

  get nextSibling(): FakeNode | null {
    const siblings = this.parentNode?.childNodes ?? [];
    return siblings[this.index + 1] ?? null;
  }

  /** Kept by the parent, so that neighbours are found without a search. */
  index = -1;

  remove(): void {
    this.parentNode?.removeChild(this);
  }
}

export class FakeText extends FakeNode {
  #data: string;

  constructor(data: string) {
    super(3);
    this.#data = String(data);
  }

  get data(): string {
    return this.#data;
  }

  set data(value: string) {
    domWork += 1;
    this.#data = String(value);
  }

  override toString(): string {
    return escaped(this.#data);
  }
}

export class FakeElement extends FakeNode {
  readonly attributes: { name: string; value: string }[] = [];
  readonly childNodes: FakeNode[] = [];
  readonly listeners = new Map<string, (event: unknown) => void>();
  readonly namespaceURI = "http://www.w3.org/1999/xhtml";

  constructor(readonly localName: string) {
    super(1);
  }

  get firstChild(): FakeNode | null {
    return this.childNodes[0] ?? null;
  }

  insertBefore(node: FakeNode, before: FakeNode | null): void {
    domWork += 1;
    node.remove();
    this.childNodes.splice(before ? before.index : this.childNodes.length, 0, node);
    node.parentNode = this;
    this.#number(before ? 0 : this.childNodes.length - 1);
  }

  removeChild(node: FakeNode): void {
    domWork += 1;
    this.childNodes.splice(node.index, 1);
    node.parentNode = null;
    this.#number(0);
  }

  replaceChildren(): void {
    this.childNodes.splice(0);
  }

  #number(from: number): void {
    for (let index = from; index < this.childNodes.length; index++) {
      (this.childNodes[index] as FakeNode).index = index;
    }
  }

  setAttribute(name: string, value: unknown): void {
    domWork += 1;
    this.removeAttribute(name);
    this.attributes.push({ name, value: value === true ? "" : String(value) });
  }

  removeAttribute(name: string): void {
    const at = this.attributes.findIndex((attribute) => attribute.name === name);
    if (at >= 0) {
      this.attributes.splice(at, 1);
    }
  }

  addEventListener(type: string, listener: (event: unknown) => void): void {
    this.listeners.set(type, listener);
  }

  removeEventListener(type: string): void {
    this.listeners.delete(type);
  }

  /** All elements with this name, in the order of the text. */
  find(name: string): FakeElement[] {
    return this.childNodes.flatMap((node) => (node instanceof FakeElement ? [...(node.localName === name ? [node] : []), ...node.find(name)] : []));
  }

  get inside(): string {
    return this.childNodes.join("");
  }

  override toString(): string {
    const attributes = this.attributes.map(({ name, value }) => ` ${name}="${escaped(value)}"`).join("");
    return VOID.has(this.localName) ? `<${this.localName}${attributes}>` : `<${this.localName}${attributes}>${this.inside}</${this.localName}>`;
  }
}

export const fakeDocument = {
  createElementNS: (_namespace: string, name: string) => new FakeElement(name),
  createTextNode: (text: string) => new FakeText(text),
};

Object.assign(globalThis, { document: fakeDocument });
