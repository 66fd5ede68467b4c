// Ctrl+K: type to find a conversation, or begin a new one, without leaving the keyboard.

import { openDialog } from "../ui/dialog";
import { make, refill } from "../ui/dom";
import type { Library } from "./library";
import { search } from "./search";

const MOST = 8;

export interface SwitcherNavigation {
  newChat(): void;
  openChat(id: string): void;
}

export function openSwitcher(library: Library, go: SwitcherNavigation): void {
  // One that is closing does not count: whoever presses Ctrl+K again at once wants the next.
  if (document.querySelector("dialog.switcher[open]")) {
    return;
  }
  let at = 0;
  let options: { label: string; note: string; run: () => void }[] = [];
  const list = make("ul", { role: "listbox", id: "switcher-list", class: "switcher-list", "aria-label": "Conversations" });
  const input = make("input", {
    type: "text",
    class: "input",
    role: "combobox",
    placeholder: "Search conversations, or Enter for a new chat",
    "aria-label": "Search conversations",
    "aria-controls": "switcher-list",
    "aria-expanded": "true",
    autocomplete: "off",
  });
  let chosen: (() => void) | undefined;
  const choose = (index: number) => {
    chosen = options[index]?.run;
    dialog.close();
  };
  const show = () => {
    refill(
      list,
      ...options.map(({ label, note }, index) =>
        make(
          "li",
          { role: "option", id: `option-${index}`, "aria-selected": index === at ? "true" : "false", onclick: () => choose(index) },
          make("span", { class: "conversation-title" }, label),
          make("span", { class: "excerpt" }, note),
        ),
      ),
    );
    input.setAttribute("aria-activedescendant", `option-${at}`);
  };
  const look = () => {
    const found = search(library.all(), input.value).slice(0, MOST);
    options = [
      { label: "New chat", note: "", run: () => go.newChat() },
      ...found.map(({ conversation, excerpt }) => ({ label: conversation.title, note: excerpt, run: () => go.openChat(conversation.id) })),
    ];
    at = input.value.trim() !== "" && options.length > 1 ? 1 : 0;
    show();
  };
  input.addEventListener("input", look);
  input.addEventListener("keydown", (event) => {
    const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    if (step !== 0) {
      event.preventDefault();
      at = (at + step + options.length) % options.length;
      show();
    } else if (event.key === "Enter" && !event.isComposing) {
      event.preventDefault();
      choose(at);
    }
  });
  const { dialog, result } = openDialog("Go to", () => [input, list], { class: "switcher" });
  void result.then(() => {
    // Not before: while the dialog is open, nothing else takes focus.
    chosen?.();
  });
  look();
  input.focus();
}
