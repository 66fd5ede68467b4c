// The field for the next message: it grows with its text. Buttons to send, stop and think; how full the context is.

import { useLayoutEffect, useRef } from "preact/hooks";
import { isDemoChoice } from "../model/demo";
import { classes, IconButton } from "../ui/button";
import { Icon } from "../ui/icons";
import { isTouch } from "../ui/navigation";
import { useParts } from "../ui/parts";
import { ContextMeter } from "./context-meter";

export function Composer({ send }: { send: (text: string) => boolean }) {
  const { chat, host } = useParts();
  const input = useRef<HTMLTextAreaElement>(null);
  const conversation = chat.conversation;
  const draft = chat.drafts.get(conversation);
  const writing = chat.writing?.conversation === conversation;
  const { atHand } = host;
  useLayoutEffect(() => fit(input.current), [draft]);
  const submit = () => {
    // The field may have changed after the last render.
    const typed = chat.drafts.get(conversation);
    if (typed.trim() !== "") {
      // Before sending: with its first message a chat gets another draft.
      chat.drafts.set(conversation, "");
      if (!send(typed.trim())) {
        chat.drafts.set(conversation, typed);
      }
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
      <div class="composer-field">
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
        />
        {writing && <IconButton label="Stop" icon="stop" class="send stop" onClick={stop} />}
        {(!writing || draft.trim() !== "") && <IconButton label={writing ? "Queue" : "Send"} icon="send" class="send" onClick={submit} />}
      </div>
      <div class="composer-below">
        <ThinkSwitch />
        <span id="composer-hint" class="hint">
          {writing ? "Enter queues, Esc stops the reply." : "Enter sends, Shift+Enter adds a line."}
        </span>
        <ContextMeter draft={draft} />
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
