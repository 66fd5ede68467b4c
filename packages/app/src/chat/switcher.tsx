// Ctrl+K: finds a chat or starts a new one by keyboard.

import { useEffect, useRef, useState } from "preact/hooks";
import { openDialog } from "../ui/dialog";
import { focusComposer } from "../ui/navigation";
import type { Library } from "./library";
import { search } from "./search";

const MOST = 8;

export interface SwitcherNavigation {
  newChat(): void;
  openChat(id: string): void;
}

export function openSwitcher(library: Library, go: SwitcherNavigation): void {
  // A switcher that is being closed does not count.
  if (document.querySelector("dialog.switcher[open]")) {
    return;
  }
  let chosen: (() => void) | undefined;
  const content = (close: (result: string) => void) => (
    <Switcher
      library={library}
      go={go}
      choose={(run) => {
        chosen = run;
        close("");
      }}
    />
  );
  // Only afterwards: while a dialog is open, nothing outside it can have the focus.
  void openDialog("Go to", content, { class: "switcher" }).then(() => chosen?.());
}

interface SwitcherProps {
  library: Library;
  go: SwitcherNavigation;
  choose: (run: () => void) => void;
}

function Switcher({ library, go, choose }: SwitcherProps) {
  const [query, setQuery] = useState("");
  const [moved, setMoved] = useState<number | undefined>();
  const input = useRef<HTMLInputElement>(null);
  useEffect(() => input.current?.focus(), []);
  const newChat = () => {
    go.newChat();
    focusComposer();
  };
  const options = [
    { id: "new", label: "New chat", note: "", run: newChat },
    ...search(library.all(), query)
      .slice(0, MOST)
      .map(({ conversation: { id, title }, excerpt }) => ({ id, label: title, note: excerpt, run: () => go.openChat(id) })),
  ];
  // The first match, if the user typed something.
  const start = query.trim() !== "" && options.length > 1 ? 1 : 0;
  const at = moved === undefined ? start : moved % options.length;
  const key = (event: KeyboardEvent) => {
    const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    if (step !== 0) {
      event.preventDefault();
      setMoved((at + step + options.length) % options.length);
    } else if (event.key === "Enter" && !event.isComposing) {
      event.preventDefault();
      choose(options[at]?.run ?? newChat);
    }
  };
  return (
    <>
      <input
        ref={input}
        type="text"
        class="input"
        role="combobox"
        placeholder="Search chats, or press Enter for a new one"
        aria-label="Search chats"
        aria-controls="switcher-list"
        aria-expanded={true}
        aria-activedescendant={`option-${at}`}
        autocomplete="off"
        value={query}
        onInput={({ currentTarget }) => {
          setQuery(currentTarget.value);
          setMoved(undefined);
        }}
        onKeyDown={key}
      />
      <ul role="listbox" id="switcher-list" class="switcher-list" aria-label="Chats">
        {options.map(({ id, label, note, run }, index) => (
          <li key={id} role="option" id={`option-${index}`} aria-selected={index === at} onClick={() => choose(run)}>
            <span class="conversation-title">{label}</span>
            <span class="excerpt">{note}</span>
          </li>
        ))}
      </ul>
    </>
  );
}
