// The demo model on the Models page: what it is, and what is stored of it.

import { bytes } from "../text/format";
import { button } from "../ui/button";
import { make } from "../ui/dom";
import { DEMO_LIMITS, DEMO_TITLE, isThisDemo } from "./demo";
import type { StoredGroup } from "./parts";
import { housekeeping, type StoredRowOptions } from "./stored-row";

/** `group` is what is stored of it, if anything is. */
export function demoRow(group: StoredGroup | undefined, options: StoredRowOptions): HTMLElement {
  const { host, use } = options;
  const inUse = host.state.kind === "ready" && isThisDemo(host.state.choice);
  const state = inUse
    ? "In use."
    : group?.complete
      ? "It is stored in this browser."
      : group && `${bytes(group.storedBytes)} of ${bytes(group.bytes)} are stored.`;
  return make(
    "li",
    { class: "row between" },
    make("div", { class: "grow" }, make("strong", {}, DEMO_TITLE), make("div", { class: "muted small" }, [DEMO_LIMITS, state].filter(Boolean).join(" "))),
    make(
      "div",
      { class: "row tight" },
      ...(group ? housekeeping(group, options) : []),
      !inUse && button("Use", () => use(host.demo), { kind: "primary", title: "Use Demo model" }),
    ),
  );
}
