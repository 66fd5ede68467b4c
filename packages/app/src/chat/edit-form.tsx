// Edits a question that was asked before.

import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { AttachmentTiles } from "../attach/attachment-tiles";
import { Button } from "../ui/button";
import type { Attachment } from "./attachments";

interface EditProps {
  text: string;
  attachments: readonly Attachment[];
  save: (text: string, attachments: readonly Attachment[]) => void;
  close: () => void;
}

export function EditForm({ text, attachments, save, close }: EditProps) {
  const [kept, setKept] = useState(attachments);
  const input = useRef<HTMLTextAreaElement>(null);
  useLayoutEffect(() => {
    input.current?.focus();
    input.current?.setSelectionRange(text.length, text.length);
  }, []);
  const submit = () => {
    const typed = input.current?.value.trim() ?? "";
    if (typed === "" && kept.length === 0) {
      close();
    } else {
      save(typed, kept);
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
      <AttachmentTiles
        attachments={kept}
        remove={({ id }) => {
          setKept(kept.filter((one) => one.id !== id));
          input.current?.focus();
        }}
      />
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
