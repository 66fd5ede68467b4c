// Syntax highlighting by lowlight, which is fetched when the first finished code block asks for it.

import type { RootContent } from "hast";
import { h, type ComponentChildren } from "preact";

/** Longer code is shown without colours: the page stands still while it is highlighted. */
const LONGEST = 20_000;
/** Longer lines are data or generated code, for which the grammars of highlighters were not made. */
const LONGEST_LINE = 1000;

type Lowlight = ReturnType<typeof import("lowlight").createLowlight>;

let loading: Promise<Lowlight | undefined> | undefined;

function load(): Promise<Lowlight | undefined> {
  loading ??= import("lowlight").then(
    ({ createLowlight, common }) => createLowlight(common),
    () => {
      // There may be a network again when the next block asks.
      loading = undefined;
      return undefined;
    },
  );
  return loading;
}

export function mayHighlight(language: string, text: string): boolean {
  return language !== "" && text.length <= LONGEST && text.split("\n").every(({ length }) => length <= LONGEST_LINE);
}

/** The code as nodes; undefined if it is to be shown as plain text. */
export async function highlight(language: string, text: string): Promise<ComponentChildren> {
  if (!mayHighlight(language, text)) {
    return undefined;
  }
  const lowlight = await load();
  const name = language.toLowerCase();
  return lowlight?.registered(name) ? nodes(lowlight.highlight(name, text).children) : undefined;
}

function nodes(children: readonly RootContent[]): ComponentChildren[] {
  return children.map((child) => {
    if (child.type !== "element") {
      return "value" in child ? child.value : "";
    }
    const names = child.properties.className;
    return h("span", { class: Array.isArray(names) ? names.join(" ") : undefined }, nodes(child.children));
  });
}
