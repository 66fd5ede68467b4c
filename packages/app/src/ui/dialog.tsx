// Modal dialogs: the browser's own `<dialog>`, which keeps the focus inside and closes with Esc.

import { render, type ComponentChildren } from "preact";
import { useId, useLayoutEffect, useRef } from "preact/hooks";
import { Button, classes } from "./button";

type Close = (result: string) => void;

/**
 * Opens a dialog. `content` gets the function that closes it. Resolves to the result when the dialog is closed and the focus is
 * back where it was; a dialog that the user dismisses gives "".
 */
export function openDialog(title: string, content: (close: Close) => ComponentChildren, options: { class?: string } = {}): Promise<string> {
  const before = document.activeElement as HTMLElement | null;
  const container = document.createElement("div");
  document.body.append(container);
  return new Promise((resolve) => {
    const closed = (result: string) => {
      render(null, container);
      container.remove();
      // The browser has restored the focus already. But if a field of the dialog had it, Chromium sends keys nowhere until the
      // focus changes once more. If the user has moved the focus in the meantime, it stays there.
      if (document.activeElement === before || document.activeElement === document.body) {
        before?.blur?.();
        before?.focus?.();
      }
      resolve(result);
    };
    render(<Dialog title={title} class={options.class} content={content} closed={closed} />, container);
  });
}

interface DialogProps {
  title: string;
  class?: string;
  content: (close: Close) => ComponentChildren;
  closed: (result: string) => void;
}

function Dialog({ title, class: name, content, closed }: DialogProps) {
  const ref = useRef<HTMLDialogElement>(null);
  const heading = useId();
  useLayoutEffect(() => ref.current?.showModal(), []);
  const close = (result: string) => ref.current?.close(result);
  return (
    <dialog
      ref={ref}
      class={classes("dialog", name)}
      aria-labelledby={heading}
      // A click on the backdrop closes the dialog.
      onClick={(event) => event.target === ref.current && close("")}
      onClose={() => setTimeout(() => closed(ref.current?.returnValue ?? ""))}
    >
      <h2 id={heading}>{title}</h2>
      {content(close)}
    </dialog>
  );
}

/** Asks a yes-or-no question. */
export async function confirm(title: string, text: ComponentChildren, action: string, kind: "danger" | "primary" = "danger"): Promise<boolean> {
  const result = await openDialog(title, (close) => (
    <>
      <div class="dialog-text">{text}</div>
      <div class="dialog-actions">
        <Button onClick={() => close("")}>Cancel</Button>
        <Button kind={kind} onClick={() => close("yes")}>
          {action}
        </Button>
      </div>
    </>
  ));
  return result === "yes";
}

/** Asks for a line of text; undefined if the user cancels or leaves it empty. */
export async function ask(title: string, label: string, value: string, action: string): Promise<string | undefined> {
  let typed = value;
  const result = await openDialog(title, (close) => (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        close("yes");
      }}
    >
      <label class="field">
        <span>{label}</span>
        <input
          ref={(input: HTMLInputElement | null) => input?.select()}
          type="text"
          class="input"
          maxLength={200}
          value={value}
          onInput={({ currentTarget }) => {
            typed = currentTarget.value;
          }}
        />
      </label>
      <div class="dialog-actions">
        <Button onClick={() => close("")}>Cancel</Button>
        <button type="submit" class="button primary">
          {action}
        </button>
      </div>
    </form>
  ));
  return result === "yes" && typed.trim() !== "" ? typed.trim() : undefined;
}
