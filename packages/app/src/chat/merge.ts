// Two versions of one conversation become one, so that tabs which write at the same time lose nothing of each other.
//
// A message is written by one tab only, and never changes afterwards; so each is taken from whoever wrote it. Of the rest, what
// this tab changed since it last looked is this tab's, and all else is as it is stored.

import type { ChatMessage, Conversation } from "./tree";

/** What was stored when this tab last looked. */
export interface Base {
  title: string;
  named: boolean;
  system: string;
  shown: Readonly<Record<string, string>>;
  messages: ReadonlySet<string>;
}

export function baseOf({ title, named, system, shown, messages }: Conversation): Base {
  return { title, named, system, shown: { ...shown }, messages: new Set(messages.map(({ id }) => id)) };
}

/** What is to be stored. `written` tells whether this tab wrote a message. Messages that say the same stay the objects they are. */
export function merge(stored: Conversation, mine: Conversation, base: Base | undefined, written: (id: string) => boolean): Conversation {
  const own = new Map(mine.messages.map((message) => [message.id, message]));
  const known = new Set(stored.messages.map(({ id }) => id));
  const removed = (id: string) => !own.has(id) && base?.messages.has(id) === true;
  const messages: ChatMessage[] = stored.messages
    // One that something follows elsewhere stays, or what follows would hang in the air.
    .filter(({ id }) => !removed(id) || stored.messages.some(({ parent }) => parent === id))
    .map((message) => {
      const here = own.get(message.id);
      return here && (written(message.id) || same(here, message)) ? here : message;
    });
  messages.push(...mine.messages.filter(({ id }) => !known.has(id)));
  const field = <K extends "title" | "named" | "system">(name: K) => ((mine[name] as unknown) === base?.[name] ? stored[name] : mine[name]);
  const shown = { ...stored.shown };
  for (const parent of new Set([...Object.keys(mine.shown), ...Object.keys(base?.shown ?? {})])) {
    const now = mine.shown[parent];
    if (now === base?.shown[parent]) {
      continue;
    }
    if (now === undefined) {
      delete shown[parent];
    } else {
      shown[parent] = now;
    }
  }
  return {
    id: mine.id,
    title: field("title"),
    named: field("named"),
    system: field("system"),
    createdAt: mine.createdAt,
    updatedAt: Math.max(stored.updatedAt, mine.updatedAt),
    messages,
    shown,
  };
}

/** An answer that was being written when this tab came counts as ended here; as long as no more is said, so it is. */
function same(here: ChatMessage, stored: ChatMessage): boolean {
  return here.content === stored.content && here.thought === stored.thought && (here.state === stored.state || stored.state === "writing");
}
