// Markdown as a component. A thin wrapper around the renderer on DOM nodes.

import { useLayoutEffect, useRef } from "preact/hooks";
import { announce } from "../ui/notices";
import { MarkdownStream } from "./stream";

export function Markdown({ text }: { text: string; growing: boolean }) {
  const target = useRef<HTMLDivElement>(null);
  const stream = useRef<MarkdownStream | undefined>(undefined);
  useLayoutEffect(() => {
    stream.current ??= new MarkdownStream(target.current as HTMLElement, { document, onCopy: copyCode });
    stream.current.update(text);
  }, [text]);
  return <div ref={target} class="markdown" />;
}

function copyCode(text: string, pressed: HTMLButtonElement): void {
  void navigator.clipboard
    .writeText(text)
    .then(() => true, () => false)
    .then((copied) => {
      pressed.textContent = copied ? "Copied" : "Not allowed";
      announce(copied ? "Copied" : "The browser did not allow copying");
      setTimeout(() => {
        pressed.textContent = "Copy";
      }, 2000);
    });
}
