// Edits a question that was asked before.

import { useLayoutEffect, useRef } from "preact/hooks";
import { Button } from "../ui/button";

export function EditForm({ text, save, close }: { text: string; save: (text: string) => void; close: () => void }) {
  const input = useRef<HTMLTextAreaElement>(null);
  useLayoutEffect(() => {
    input.current?.focus();
    input.current?.setSelectionRange(text.length, text.length);
  }, []);
  const submit = () => {
    const typed = input.current?.value.trim() ?? "";
    if (typed === "") {
      close();
    } else {
      save(typed);
    }
  };
  const key = (event: KeyboardEvent) => {
    if (event.key === "Escape") {
      event.stopPropagation();
      close();
    } else if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      submit();
    }
  };
  return (
    <div class="edit-form">
      <textarea ref={input} class="input edit-input" aria-label="Edit the message" rows={3} defaultValue={text} onKeyDown={key} />
      <div class="row end">
        <Button onClick={close}>Cancel</Button>
        <Button kind="primary" onClick={submit}>
          Send
        </Button>
      </div>
    </div>
  );
}
