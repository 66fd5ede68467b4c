// The chat page: the messages, what is known about the model, and the field for the next message.

import { useSignalEffect } from "@preact/signals";
import { useCallback, useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { reasonAgainstAny, sensesOf } from "../attach/senses";
import { DEMO_LABEL, isThisDemo } from "../model/demo";
import { labelOf } from "../model/choice";
import type { ModelHost } from "../model/host";
import { Button } from "../ui/button";
import { focusComposer, isTouch } from "../ui/navigation";
import { announce, notify, type Notice } from "../ui/notices";
import { useParts } from "../ui/parts";
import type { Attachment, Unsent } from "./attachments";
import { Composer } from "./composer";
import { LiveRate } from "./live-rate";
import { MessageList } from "./message-list";
import { NOTHING } from "./message-view";
import { Queue } from "./queue-view";
import { Welcome } from "./welcome";

/** Pixels from the end that still count as the end. */
const NEAR = 80;

const WRITING = "The model is writing";

export function ChatView() {
  const { chat, host } = useParts();
  const conversation = chat.conversation;
  const empty = conversation.messages.length === 0;
  const { scroller, content, follow, away, scrolled } = useFollowing(empty);
  const send = useSend(follow);
  useVoice();
  const ask = (text: string, attachments: readonly Attachment[] = []) => {
    // The pressed button disappears, so the focus moves to the field.
    if (send({ text, attachments }) && !isTouch()) {
      focusComposer();
    }
  };
  useEffect(follow, [conversation.id]);
  return (
    <section class="chat" aria-label="Chat">
      <div class="scroller" ref={scroller} tabIndex={-1} onScroll={scrolled}>
        <div ref={content}>
          {(empty || host.state.kind === "busy") && <Welcome empty={empty} ask={ask} />}
          {!empty && <MessageList follow={follow} />}
        </div>
      </div>
      <div class="chat-bottom">
        {away && (
          <Button class="latest" icon="down" onClick={follow}>
            Latest
          </Button>
        )}
        <LiveRate />
        <Queue />
        <Composer send={send} />
      </div>
    </section>
  );
}

/** Keeps the end of the chat in view while it grows, unless the user has scrolled up. */
function useFollowing(empty: boolean) {
  const scroller = useRef<HTMLDivElement>(null);
  const content = useRef<HTMLDivElement>(null);
  const follows = useRef(true);
  const isEmpty = useRef(empty);
  isEmpty.current = empty;
  const [away, setAway] = useState(false);
  const toEnd = useCallback(() => {
    const element = scroller.current;
    if (element && follows.current) {
      element.scrollTop = isEmpty.current ? 0 : element.scrollHeight;
    }
  }, []);
  useLayoutEffect(() => {
    // Everything that changes the height: text, errors, the size of the window, the queue below.
    const observer = new ResizeObserver(toEnd);
    [scroller, content].forEach(({ current }) => current && observer.observe(current));
    return () => observer.disconnect();
  }, []);
  const follow = useCallback(() => {
    follows.current = true;
    setAway(false);
    toEnd();
  }, []);
  const scrolled = () => {
    const { scrollTop, scrollHeight, clientHeight } = scroller.current as HTMLElement;
    follows.current = scrollHeight - scrollTop - clientHeight < NEAR;
    setAway(!follows.current);
  };
  return { scroller, content, follow, away, scrolled };
}

/** Sends a message; gives false if there is no model for it. */
function useSend(follow: () => void): (unsent: Unsent) => boolean {
  const { chat, host, go } = useParts();
  const waiting = useRef<Notice | undefined>(undefined);
  useSignalEffect(() => {
    if (host.state.kind !== "empty") {
      waiting.current?.remove();
    }
  });
  return ({ text, attachments }) => {
    const { state, atHand, checking } = host;
    waiting.current?.remove();
    if (state.kind !== "ready" && state.kind !== "busy" && !checking && !atHand) {
      waiting.current = notify("Choose a model first. Your message stays here.", { label: "Models", run: () => go.models() });
      return false;
    }
    const reason = reasonAgainstAny(attachments, sensesOf(host));
    if (reason !== undefined) {
      waiting.current = notify(`${reason} Your message stays here: remove what is attached, or choose another model.`, { label: "Models", run: () => go.models() });
      return false;
    }
    const queued = chat.writing !== undefined;
    announce(queued ? "Queued" : state.kind === "ready" ? WRITING : `Loading ${awaitedLabel(host)}`);
    void chat.send(text, attachments);
    if (!queued) {
      go.shown(chat.conversation.id);
    }
    follow();
    return true;
  };
}

/** Tells screen readers when an answer begins and, once, what it says: they can't follow every word. */
function useVoice(): void {
  const { chat, host } = useParts();
  const waits = useRef(false);
  useSignalEffect(() => {
    const { writing, growth } = chat;
    if (writing && growth >= 0) {
      if (writing.tokens === 0) {
        waits.current ||= host.state.kind !== "ready";
      } else if (waits.current) {
        waits.current = false;
        announce(WRITING);
      }
    }
  });
  const heard = useRef(chat.finished);
  useSignalEffect(() => {
    const { finished } = chat;
    if (!finished || finished === heard.current) {
      return;
    }
    heard.current = finished;
    const { id, state, content } = finished.message;
    if (chat.conversation.messages.some((message) => message.id === id)) {
      announce(state === "failed" ? "The answer failed" : state === "stopped" ? `Stopped. ${content}` : content || NOTHING);
    }
  });
}

/** The model that has to be loaded before the answer. */
function awaitedLabel({ state, atHand }: ModelHost): string {
  if (state.kind === "busy") {
    return state.label;
  }
  if (!atHand) {
    return "the model";
  }
  return isThisDemo(atHand) ? DEMO_LABEL : labelOf(atHand);
}
