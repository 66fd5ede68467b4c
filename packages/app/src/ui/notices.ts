// Short messages: those that everybody sees at the edge of the page, and those that only a screen reader says.

import { button, iconButton } from "./button";
import { make } from "./dom";
import { explain } from "../text/errors";

/** Milliseconds that a message stays: long enough to be read twice. */
const stays = (text: string) => Math.max(4000, text.length * 100);

let region: HTMLElement | undefined;
let voice: HTMLElement | undefined;

/** Makes the places where messages go. They must exist before the first message, or screen readers miss it. */
export function noticeRegions(): HTMLElement[] {
  region = make("div", { class: "notices", role: "region", "aria-label": "Messages" });
  voice = make("div", { class: "visually-hidden", role: "status", "aria-live": "polite", id: "voice" });
  return [region, voice];
}

/** Says something to screen readers alone. */
export function announce(text: string): void {
  if (voice) {
    voice.textContent = text;
  }
}

/** Shows a message for a while; with an action, until it is taken or sent away. Gives the message, which can be taken away. */
export function notify(text: string, action?: { label: string; run: () => void }): HTMLElement {
  const notice = make("div", { class: "notice", role: "status" }, make("span", {}, text));
  const remove = () => notice.remove();
  if (action) {
    const run = () => {
      remove();
      action.run();
    };
    notice.append(button(action.label, run, { kind: "quiet" }));
  } else {
    setTimeout(remove, stays(text));
  }
  notice.append(iconButton("Dismiss", "close", remove));
  region?.append(notice);
  announce(text);
  return notice;
}

/** Shows what went wrong, in words. What the user stopped needs none. */
export function notifyError(thrown: unknown): void {
  const { code, title, text } = explain(thrown);
  if (code !== "cancelled") {
    notify(`${title}. ${text}`);
  }
}
