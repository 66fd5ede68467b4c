// The field for the next message: it grows with its text. What is attached; buttons to attach, send, stop and think; how full the context is.

import { useLayoutEffect, useRef } from "preact/hooks";
import { attachFiles, isMedia } from "../attach/attach";
import { AttachMenu, RecordButton } from "../attach/attach-menu";
import { AttachmentTiles } from "../attach/attachment-tiles";
import { isDemoChoice } from "../model/demo";
import { classes, IconButton } from "../ui/button";
import { Icon } from "../ui/icons";
import { isTouch } from "../ui/navigation";
import { announce } from "../ui/notices";
import { useParts } from "../ui/parts";
import { titleOfAttachment, type Attachment, type Unsent } from "./attachments";
import { ContextMeter } from "./context-meter";

export function Composer({ send }: { send: (unsent: Unsent) => boolean }) {
  const parts = useParts();
  const { chat, host } = parts;
  const input = useRef<HTMLTextAreaElement>(null);
  const conversation = chat.conversation;
  const draft = chat.drafts.get(conversation);
  const attachments = chat.drafts.attachments(conversation);
  const hasDraft = draft.trim() !== "" || attachments.length > 0;
  const writing = chat.writing?.conversation === conversation;
  const { atHand } = host;
  useLayoutEffect(() => fit(input.current), [draft]);
  const submit = () => {
    // The field may have changed after the last render. Before sending: with its first message a chat gets another draft.
    const unsent = chat.drafts.take(conversation);
    const text = unsent.text.trim();
    const sent = (text !== "" || unsent.attachments.length > 0) && send({ ...unsent, text });
    if (!sent) {
      chat.drafts.giveBack(conversation, unsent);
    }
  };
  const remove = (attachment: Attachment) => {
    chat.detach(attachment);
    announce(`Removed ${titleOfAttachment(attachment)}`);
    // The button disappears with the focus on it.
    input.current?.focus();
  };
  const paste = (event: ClipboardEvent) => {
    // Office programs add a picture of the text that was copied.
    const files = event.clipboardData?.types.includes("text/plain") ? [] : [...(event.clipboardData?.files ?? [])].filter(isMedia);
    if (files.length > 0) {
      event.preventDefault();
      void attachFiles(parts, files);
    }
  };
  const stop = () => {
    void chat.stop();
    // The button disappears with the focus on it.
    input.current?.focus();
  };
  const key = (event: KeyboardEvent) => {
    // While an input method composes, Enter picks a word. On touch screens it starts a new line, as in other apps.
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing && !isTouch()) {
      event.preventDefault();
      submit();
    }
  };
  return (
    <div class="composer">
      <div class={classes("composer-field", !hasDraft && "unused")}>
        <AttachmentTiles attachments={attachments} remove={remove} />
        <div class="composer-row">
          <AttachMenu />
          <textarea
            ref={input}
            class="composer-input"
            rows={1}
            placeholder={writing ? "Write the next message" : atHand && isDemoChoice(atHand) ? "Ask about rullama" : "Ask anything"}
            aria-label="Message"
            aria-describedby="composer-hint"
            enterkeyhint="send"
            value={draft}
            onInput={({ currentTarget }) => chat.drafts.set(conversation, currentTarget.value)}
            onKeyDown={key}
            onPaste={paste}
          />
          <RecordButton />
          {writing && <IconButton label="Stop" icon="stop" class="send stop" onClick={stop} />}
          {(!writing || hasDraft) && <IconButton label={writing ? "Queue" : "Send"} icon="send" class="send" onClick={submit} />}
        </div>
      </div>
      <div class="composer-below">
        <ThinkSwitch />
        <span id="composer-hint" class="hint">
          {writing ? "Enter queues, Esc stops the reply." : "Enter sends, Shift+Enter adds a line."}
        </span>
        <ContextMeter draft={draft} attachments={attachments} />
      </div>
    </div>
  );
}

function ThinkSwitch() {
  const { preferences } = useParts();
  const { think } = preferences.settings;
  return (
    <button
      type="button"
      class={classes("think-switch", think && "on")}
      aria-pressed={think}
      data-setting="think"
      title="The model thinks before it answers: slower, but better at hard questions."
      onClick={() => preferences.change({ think: !think })}
    >
      <Icon name="think" />
      <span>{think ? "Thinking on" : "Thinking off"}</span>
    </button>
  );
}

function fit(input: HTMLTextAreaElement | null): void {
  input?.style.setProperty("height", "auto");
  input?.style.setProperty("height", `${input.scrollHeight}px`);
}
