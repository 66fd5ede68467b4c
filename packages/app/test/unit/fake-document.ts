// As much of a document as the Markdown renderer uses, written out as text, so that tests see exactly what would be made.

const escaped = (text: string) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll('"', "&quot;");

class FakeText {
  constructor(readonly text: string) {}

  toString(): string {
    return this.text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
  }
}

class FakeElement {
  className = "";
  readonly attributes: [string, string][] = [];
  readonly children: (FakeElement | FakeText)[] = [];
  readonly listeners: [string, () => void][] = [];
  parent: FakeElement | undefined;

  constructor(readonly tag: string) {}

  append(...nodes: (FakeElement | FakeText)[]): void {
    for (const node of nodes) {
      if (node instanceof FakeElement) {
        node.parent = this;
      }
      this.children.push(node);
    }
  }

  remove(): void {
    const { parent } = this;
    parent?.children.splice(parent.children.indexOf(this), 1);
  }

  setAttribute(name: string, value: string): void {
    this.attributes.push([name, value]);
  }

  addEventListener(type: string, listener: () => void): void {
    this.listeners.push([type, listener]);
  }

  toString(): string {
    const attributes: [string, string][] = this.className ? [["class", this.className], ...this.attributes] : this.attributes;
    const written = attributes.map(([name, value]) => ` ${name}="${escaped(value)}"`).join("");
    return `<${this.tag}${written}>${this.children.join("")}</${this.tag}>`;
  }
}

export const fakeDocument = {
  createElement: (tag: string) => new FakeElement(tag),
  createTextNode: (text: string) => new FakeText(text),
} as unknown as Document;
