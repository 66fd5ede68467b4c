// Short messages at the edge of the page, and texts that only screen readers speak.

import { signal } from "@preact/signals";
import { explain } from "../text/errors";
import { Button, IconButton } from "./button";

export interface Notice {
  readonly text: string;
  readonly action?: { label: string; run: () => void };
  remove(): void;
}

const shown = signal<readonly Notice[]>([]);

/** Milliseconds that a message stays: long enough to read it twice. */
const duration = (text: string) => Math.max(4000, text.length * 100);

/** Shows a message for a few seconds; one with an action stays until the user takes the action or dismisses it. */
export function notify(text: string, action?: Notice["action"]): Notice {
  const notice: Notice = {
    text,
    ...(action ? { action } : {}),
    remove: () => {
      shown.value = shown.peek().filter((one) => one !== notice);
    },
  };
  // The same message again replaces the old one.
  shown.value = [...shown.peek().filter((one) => one.text !== text), notice];
  if (!action) {
    setTimeout(notice.remove, duration(text));
  }
  announce(text);
  return notice;
}

/** The messages that are shown. For tests. */
export function shownNotices(): readonly Notice[] {
  return shown.peek();
}

/** Shows an error. One that the user caused by stopping something is not shown. */
export function notifyError(thrown: unknown): void {
  const { code, title, text } = explain(thrown);
  if (code !== "cancelled") {
    notify(`${title}. ${text}`);
  }
}

const VOICE = "voice";

/** Lets screen readers speak a text. */
export function announce(text: string): void {
  const voice = document.getElementById(VOICE);
  if (voice) {
    voice.textContent = text;
  }
}

/** The places for messages. They must exist before the first message, or screen readers miss it. */
export function Notices() {
  return (
    <>
      <div class="notices" role="region" aria-label="Messages">
        {shown.value.map((notice) => (
          <NoticeView key={notice} notice={notice} />
        ))}
      </div>
      {/* `announce` writes the text, so that the same text is spoken again. */}
      <div class="visually-hidden" role="status" aria-live="polite" id={VOICE} />
    </>
  );
}

function NoticeView({ notice: { text, action, remove } }: { notice: Notice }) {
  const run = () => {
    remove();
    action?.run();
  };
  return (
    <div class="notice" role="status">
      <span>{text}</span>
      {action && (
        <Button kind="quiet" onClick={run}>
          {action.label}
        </Button>
      )}
      <IconButton label="Dismiss" icon="close" onClick={remove} />
    </div>
  );
}
