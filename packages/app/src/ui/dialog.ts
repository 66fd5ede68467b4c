// Questions to the user: the browser's own modal dialogs, which keep focus inside and close with Esc.

import { button } from "./button";
import { make, type Child } from "./dom";

/** Opens a dialog with this content; `close` ends it. Gives focus back when it is over, and then the result. */
export function openDialog(
  title: string,
  content: (close: (result: string) => void) => Child[],
  options: { class?: string } = {},
): { dialog: HTMLDialogElement; result: Promise<string> } {
  const before = document.activeElement as HTMLElement | null;
  const heading = make("h2", { id: `dialog-${crypto.randomUUID()}` }, title);
  const dialog = make("dialog", { class: `dialog ${options.class ?? ""}`.trim(), "aria-labelledby": heading.id });
  const close = (result: string) => dialog.close(result);
  dialog.append(heading, ...content(close).filter((child): child is Node | string => Boolean(child)));
  // A press beside the dialog, on what is dimmed, closes it.
  dialog.addEventListener("click", (event) => event.target === dialog && dialog.close(""));
  const result = new Promise<string>((resolve) => {
    dialog.addEventListener("close", () =>
      setTimeout(() => {
        dialog.remove();
        // The browser has given focus back already. But if a field of the dialog had it, Chromium may send keys nowhere until
        // focus changes once more. Whoever was quick has gone on elsewhere meanwhile, and stays there.
        if (document.activeElement === before || document.activeElement === document.body) {
          before?.blur?.();
          before?.focus?.();
        }
        resolve(dialog.returnValue);
      }),
    );
  });
  document.body.append(dialog);
  dialog.showModal();
  return { dialog, result };
}

/** Whether the user agrees. */
export async function confirm(title: string, text: Child, action: string, kind: "danger" | "primary" = "danger"): Promise<boolean> {
  const { result } = openDialog(title, (close) => [
    make("div", { class: "dialog-text" }, text),
    make(
      "div",
      { class: "dialog-actions" },
      button("Cancel", () => close("")),
      button(action, () => close("yes"), { kind }),
    ),
  ]);
  return (await result) === "yes";
}

/** A line of text from the user; undefined if they think better of it. */
export async function ask(title: string, label: string, value: string, action: string): Promise<string | undefined> {
  const input = make("input", { type: "text", class: "input", maxlength: 200, value });
  const { result } = openDialog(title, (close) => [
    make(
      "form",
      {
        onsubmit: (event: Event) => {
          event.preventDefault();
          close("yes");
        },
      },
      make("label", { class: "field" }, make("span", {}, label), input),
      make(
        "div",
        { class: "dialog-actions" },
        button("Cancel", () => close("")),
        make("button", { type: "submit", class: "button primary" }, action),
      ),
    ),
  ]);
  input.select();
  return (await result) === "yes" && input.value.trim() !== "" ? input.value.trim() : undefined;
}
