// One message: what is attached to it, its thought, its text, its error, and its buttons.

import { useState } from "preact/hooks";
import type { EncodeProgress } from "rullama";
import { AttachmentTiles } from "../attach/attachment-tiles";
import { Markdown } from "../markdown/markdown";
import { classes } from "../ui/button";
import { ErrorBox, type Steps } from "../ui/error-box";
import { useParts } from "../ui/parts";
import { EditForm } from "./edit-form";
import { MessageFooter } from "./message-footer";
import type { Attachment } from "./attachments";
import type { ChatMessage, Place } from "./tree";
import { TrimNote } from "./trim-note";
import { useFrame } from "./use-frame";

/** Shown in place of an answer without text. */
export const NOTHING = "The model wrote nothing.";

interface MessageProps {
  message: ChatMessage;
  place: Place;
  follow: () => void;
}

export function MessageView(props: MessageProps) {
  return props.message.role === "user" ? <Question {...props} /> : <Answer {...props} />;
}

function Question({ message, place, follow }: MessageProps) {
  const { chat } = useParts();
  const [editing, setEditing] = useState(false);
  const { id, content, attachments = [], state } = message;
  const close = () => {
    setEditing(false);
    setTimeout(() => document.querySelector<HTMLElement>(`[data-id="${CSS.escape(id)}"] [aria-label="Edit"]`)?.focus());
  };
  const save = (text: string, kept: readonly Attachment[]) => {
    close();
    follow();
    void chat.edit(id, text, kept);
  };
  return (
    <article class="message user" aria-label="You" data-id={id} data-state={state}>
      {!editing && <AttachmentTiles attachments={attachments} />}
      <div class="content plain" hidden={editing || content === ""}>
        {content}
      </div>
      {editing ? <EditForm text={content} attachments={attachments} save={save} close={close} /> : <MessageFooter message={message} place={place} follow={follow} edit={() => setEditing(true)} />}
    </article>
  );
}

function Answer({ message, place, follow }: MessageProps) {
  const { chat } = useParts();
  const growing = chat.writing?.message === message;
  // Only the answer that is being written is rendered again with each token.
  useFrame(() => chat.writing?.message === message && chat.growth);
  const { id, content, thought, state, error, trimmed } = message;
  const waiting = growing && content === "" && !thought;
  const encoding = growing ? chat.writing?.encoding : undefined;
  return (
    <article class={classes("message assistant", waiting && "waiting")} aria-label="Model" aria-busy={state === "writing"} data-id={id} data-state={state}>
      {trimmed && <TrimNote trimmed={trimmed} writing={growing} />}
      {encoding && !isEncoded(encoding) && <p class="encoding">{encodingText(encoding)}</p>}
      {thought && (
        <details class="thought">
          <summary>{growing && content === "" ? "Thinking…" : "Thoughts"}</summary>
          <div class="thought-text">
            <Markdown text={thought.trimStart()} growing={growing && content === ""} />
          </div>
        </details>
      )}
      <div class="content">
        <Markdown text={content} growing={growing} />
      </div>
      {state === "complete" && content === "" && <p class="muted">{NOTHING}</p>}
      {error && <AnswerError id={id} error={error} follow={follow} />}
      {state !== "writing" && <MessageFooter message={message} place={place} follow={follow} />}
    </article>
  );
}

/** Whether the last image or sound is done: from then on, the model reads the prompt. */
function isEncoded({ index, count, fraction }: EncodeProgress): boolean {
  return fraction >= 1 && index + 1 >= count;
}

/** "Looking at the image (1 of 2) … 40 %". The position counts images and sounds of the whole chat, as the engine does. */
export function encodingText({ medium, index, count, fraction }: EncodeProgress): string {
  const place = count > 1 ? ` (${index + 1} of ${count})` : "";
  const done = `${Math.floor(fraction * 100)} %`;
  return medium === "image" ? `Looking at the image${place} … ${done}` : `Listening to the sound${place} … ${done}`;
}

function AnswerError({ id, error, follow }: { id: string; error: unknown; follow: () => void }) {
  const { chat, go } = useParts();
  const again = () => {
    follow();
    void chat.regenerate(id);
  };
  const room = (how: "drop" | "summarise") => () => {
    follow();
    void chat.makeRoom(id, how);
  };
  const steps: Steps = {
    retry: { label: "Try again", run: again },
    reload: { label: "Load the model and try again", run: again },
    models: { label: "Models", run: () => go.models() },
    settings: { label: "Settings", run: () => go.settings() },
    device: { label: "Device", run: () => go.device() },
    room: [
      { label: "Leave out the oldest messages", run: room("drop") },
      { label: "Summarise them", run: room("summarise") },
    ],
  };
  return <ErrorBox error={error} steps={steps} />;
}
