// A button that copies a text, and shows for a moment whether that worked.

import { useEffect, useState } from "preact/hooks";
import { classes } from "./button";
import { Icon } from "./icons";
import { announce } from "./notices";

/** Milliseconds that the button shows the result. */
const SHOWN = 2000;

export function CopyButton({ text }: { text: () => string }) {
  const [result, setResult] = useState<"copied" | "refused" | undefined>();
  useEffect(() => {
    if (result === undefined) {
      return;
    }
    const timer = setTimeout(() => setResult(undefined), SHOWN);
    return () => clearTimeout(timer);
  }, [result]);
  const copy = async () => {
    const copied = await copyText(text());
    setResult(copied ? "copied" : "refused");
    announce(copied ? "Copied" : "The browser did not allow copying");
  };
  const label = result === "copied" ? "Copied" : result === "refused" ? "Not allowed" : undefined;
  return (
    <button type="button" class={classes("icon-button copy-button", result && "told")} aria-label={label ?? "Copy"} title="Copy" onClick={() => void copy()}>
      <Icon name={result === "copied" ? "check" : "copy"} />
      {label && <span aria-hidden="true">{label}</span>}
    </button>
  );
}

async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false;
  }
}
