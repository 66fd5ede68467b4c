// What a model writes, on the page. Markdown never becomes HTML: it is parsed to a tree, and the tree becomes Preact nodes.

import type { VNode } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { MarkdownDocument } from "./document";

/** `growing` means that the text is still being written. */
export function Markdown({ text, growing = false }: { text: string; growing?: boolean }): VNode {
  const parsed = useRef<MarkdownDocument | undefined>(undefined);
  const shown = useLatestPerFrame(text, growing);
  parsed.current ??= new MarkdownDocument();
  return <div class="markdown">{parsed.current.update(shown, growing)}</div>;
}

/** The text, but while it grows no more than one new text for each frame of the screen: tokens may come faster. */
function useLatestPerFrame(text: string, growing: boolean): string {
  const latest = useRef(text);
  const frame = useRef<number | undefined>(undefined);
  const [shown, setShown] = useState(text);
  latest.current = text;
  useLayoutEffect(() => {
    if (growing && text !== shown) {
      frame.current ??= requestAnimationFrame(() => {
        frame.current = undefined;
        setShown(latest.current);
      });
    }
  }, [text, shown, growing]);
  useLayoutEffect(
    () => () => {
      if (frame.current !== undefined) {
        cancelAnimationFrame(frame.current);
      }
    },
    [],
  );
  return growing ? shown : text;
}
