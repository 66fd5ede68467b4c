// Maths on the page. KaTeX is fetched when the first formula is shown; until then, and for TeX that it refuses, the source is shown.

import type { VNode } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";

/** Longer TeX is shown as its source: the page stands still while KaTeX works. */
const LONGEST = 2000;

type Katex = typeof import("katex").default;

let katex: Katex | undefined;
let loading: Promise<void> | undefined;

function load(): Promise<void> {
  loading ??= Promise.all([import("katex"), import("katex/dist/katex.min.css")]).then(
    ([module]) => {
      katex = module.default;
    },
    () => {
      // There may be a network again when the next formula asks.
      loading = undefined;
    },
  );
  return loading;
}

/** Puts the formula into the element; false if KaTeX is not there or refuses it. */
function draw(tex: string, display: boolean, element: HTMLElement): boolean {
  try {
    katex?.render(tex, element, { displayMode: display, throwOnError: true, strict: "ignore", trust: false, maxExpand: 200, maxSize: 20 });
    return katex !== undefined;
  } catch {
    element.replaceChildren();
    return false;
  }
}

export function Maths({ tex, source, display }: { tex: string; source: string; display: boolean }): VNode {
  // KaTeX makes the children of this element; Preact gives it none.
  const element = useRef<HTMLSpanElement>(null);
  const [drawn, setDrawn] = useState(false);
  useLayoutEffect(() => {
    let current = true;
    const show = () => {
      if (current && element.current) {
        setDrawn(draw(tex, display, element.current));
      }
    };
    if (tex.length > LONGEST) {
      setDrawn(false);
      element.current?.replaceChildren();
    } else if (katex) {
      show();
    } else {
      void load().then(show);
    }
    return () => {
      current = false;
    };
  }, [tex, display]);
  return (
    <span class={display ? "maths display" : "maths"} tabIndex={display ? 0 : undefined}>
      <span ref={element} />
      {!drawn && <code class="tex">{source}</code>}
    </span>
  );
}
