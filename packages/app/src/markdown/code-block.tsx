// A code block: its language, a button that copies it, and the code, highlighted once it is finished.

import type { ComponentChildren, VNode } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { highlight } from "./highlight";

/** Milliseconds for which the button says what it did. */
const FEEDBACK = 2000;

export function CodeBlock({ language, text, finished }: { language: string; text: string; finished: boolean }): VNode {
  const code = useHighlighted(language, text, finished);
  return (
    <figure class="code-block">
      <figcaption>
        <span>{language || "text"}</span>
        <CopyButton language={language} text={text} />
      </figcaption>
      {/* Wide code scrolls, also for people who use the keyboard. */}
      <pre tabIndex={0}>
        <code>{code}</code>
      </pre>
    </figure>
  );
}

function useHighlighted(language: string, text: string, finished: boolean): ComponentChildren {
  const [result, setResult] = useState<{ language: string; text: string; code: ComponentChildren }>();
  useEffect(() => {
    let current = true;
    if (finished) {
      void highlight(language, text).then((code) => {
        if (current && code) {
          setResult({ language, text, code });
        }
      });
    }
    return () => {
      current = false;
    };
  }, [language, text, finished]);
  return result?.text === text && result.language === language ? result.code : text;
}

function CopyButton({ language, text }: { language: string; text: string }): VNode {
  const [state, setState] = useState<"Copy" | "Copied" | "Not allowed">("Copy");
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  useEffect(() => () => clearTimeout(timer.current), []);
  const copy = async () => {
    const copied = await navigator.clipboard.writeText(text).then(
      () => true,
      () => false,
    );
    setState(copied ? "Copied" : "Not allowed");
    clearTimeout(timer.current);
    timer.current = setTimeout(() => setState("Copy"), FEEDBACK);
  };
  const action = language ? `Copy the ${language} code` : "Copy the code";
  return (
    <>
      <button type="button" class="copy" aria-label={state === "Copy" ? action : state} onClick={() => void copy()}>
        {state}
      </button>
      <span class="visually-hidden" role="status">
        {state === "Copied" ? "Copied" : state === "Not allowed" ? "The browser does not allow copying" : ""}
      </span>
    </>
  );
}
