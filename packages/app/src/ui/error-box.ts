// An error where it happened: what it means, what to do, and what exactly was said for those who want to know.

import { explain, type Step } from "../text/errors";
import { button } from "./button";
import { make } from "./dom";

/** What the steps do here; one without an entry has no button. */
export type Steps = Partial<Record<Step, { label: string; run: () => void }>>;

export function errorBox(thrown: unknown, steps: Steps): HTMLElement {
  const { code, title, text, step, detail } = explain(thrown);
  const action = steps[step];
  return make(
    "div",
    { class: "error-box", role: "alert", "data-code": code },
    make("strong", {}, title),
    make("p", {}, text),
    make("div", { class: "row" }, action && button(action.label, action.run, { kind: "primary" })),
    make("details", {}, make("summary", {}, "Details"), make("code", {}, `${code}: ${detail}`)),
  );
}
