// Merges two versions of a chat, so that tabs that write at the same time lose nothing.
//
// A message is written by one tab at a time, so each message is taken from the tab that wrote it. Of the other fields, those that
// this tab changed since it last read the chat win; the rest are taken from the stored version.

import type { ChatMessage, Conversation } from "./tree";

/** The stored chat as this tab last saw it. */
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

/** The merged chat. `written` tells whether this tab wrote a message. Messages that did not change keep their identity. */
export function merge(stored: Conversation, mine: Conversation, base: Base | undefined, written: (id: string) => boolean): Conversation {
  const own = new Map(mine.messages.map((message) => [message.id, message]));
  const known = new Set(stored.messages.map(({ id }) => id));
  const removed = (id: string) => !own.has(id) && base?.messages.has(id) === true;
  const messages: ChatMessage[] = stored.messages
    // A message with stored children stays; they would lose their parent.
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

/** An answer that another tab is writing counts as stopped here; it is the same until it grows. */
function same(here: ChatMessage, stored: ChatMessage): boolean {
  return here.content === stored.content && here.thought === stored.thought && (here.state === stored.state || stored.state === "writing");
}
