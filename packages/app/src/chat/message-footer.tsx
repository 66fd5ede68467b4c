// The buttons below a message, and facts about an answer: model, length, speed.

import { duration, plural, tokensPerSecond } from "../text/format";
import { Button, IconButton } from "../ui/button";
import { CopyButton } from "../ui/copy-button";
import { useParts } from "../ui/parts";
import type { ChatMessage, Place } from "./tree";

interface FooterProps {
  message: ChatMessage;
  place: Place;
  follow: () => void;
  /** Starts editing; for questions. */
  edit?: () => void;
}

export function MessageFooter({ message, place, follow, edit }: FooterProps) {
  const { chat } = useParts();
  const { id } = message;
  const then = (work: () => Promise<void>) => () => {
    follow();
    void work();
  };
  return (
    <footer class="message-footer">
      {place.count > 1 && <Versions id={id} place={place} />}
      <CopyButton text={() => message.content} />
      {edit ? <IconButton label="Edit" icon="edit" onClick={edit} /> : <IconButton label="Write another answer" icon="retry" onClick={then(() => chat.regenerate(id))} />}
      {chat.canContinue(message) && (
        <Button kind="quiet" class="continue" onClick={then(() => chat.continue(id))}>
          Continue
        </Button>
      )}
      <span class="facts">{facts(message)}</span>
    </footer>
  );
}

function Versions({ id, place: { index, count, ids } }: { id: string; place: Place }) {
  const { chat } = useParts();
  const to = (at: number) => () => {
    const next = ids[at] as string;
    chat.show(next);
    // The other version has its own buttons; the focus moves to them.
    setTimeout(() => document.querySelector<HTMLElement>(`[data-id="${CSS.escape(next)}"] .switch button:not(:disabled)`)?.focus());
  };
  return (
    <span class="switch" role="group" aria-label="Versions" key={id}>
      <IconButton label="Previous version" icon="back" disabled={index === 0} onClick={to(index - 1)} />
      <span class="switch-place" aria-label={`Version ${index + 1} of ${count}`}>{`${index + 1}/${count}`}</span>
      <IconButton label="Next version" icon="forward" disabled={index === count - 1} onClick={to(index + 1)} />
    </span>
  );
}

/** Tokens that a reply needs before its speed means anything: a clock in a browser is coarse, and the first tokens come in one go. */
const MEASURABLE = 5;

export function facts({ role, state, speed, cut, model }: ChatMessage): string {
  if (role === "user") {
    return "";
  }
  const words: string[] = [];
  if (state === "stopped") {
    words.push("Stopped");
  }
  if (cut) {
    words.push("Cut off at the limit");
  }
  if (model) {
    words.push(model);
  }
  if (speed && speed.generatedTokens > 0) {
    words.push(plural(speed.generatedTokens, "token"));
    if (speed.generatedTokens >= MEASURABLE) {
      words.push(tokensPerSecond(((speed.generatedTokens - 1) / speed.generateMs) * 1000));
    }
    words.push(`Time to first token ${duration(speed.promptMs)}`);
  }
  return words.join(" · ");
}
