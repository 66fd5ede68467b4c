// Messages that the user sent while a reply was being written. They are sent in order when it ends.
//
// A reload ends the reply. What is queued then goes back into the drafts, by way of the tab's own `sessionStorage`.

import { signal } from "@preact/signals";
import { parseJson } from "../state/storage";
import { newId, type Conversation } from "./tree";

const KEY = "rullama.queue";

export interface QueuedMessage {
  readonly id: string;
  readonly conversation: Conversation;
  readonly text: string;
}

export class MessageQueue {
  readonly #messages = signal<readonly QueuedMessage[]>([]);

  /** The queued messages of a chat. */
  of(conversation: Conversation): QueuedMessage[] {
    return this.#messages.value.filter((message) => message.conversation.id === conversation.id);
  }

  get length(): number {
    return this.#messages.value.length;
  }

  add(conversation: Conversation, text: string): void {
    this.#set([...this.#messages.peek(), { id: newId(), conversation, text }]);
  }

  /** Removes a message; gives it if it was still queued. */
  remove(id: string): QueuedMessage | undefined {
    const found = this.#messages.peek().find((message) => message.id === id);
    this.#set(this.#messages.peek().filter((message) => message !== found));
    return found;
  }

  /** Removes and gives the oldest message. */
  next(): QueuedMessage | undefined {
    const [first] = this.#messages.peek();
    return first && this.remove(first.id);
  }

  /** Removes the messages of a chat that was deleted. */
  forget(conversation: string): void {
    this.#set(this.#messages.peek().filter((message) => message.conversation.id !== conversation));
  }

  #set(messages: readonly QueuedMessage[]): void {
    this.#messages.value = messages;
    try {
      sessionStorage.setItem(KEY, JSON.stringify(messages.map(({ conversation, text }) => ({ conversation: conversation.id, text }))));
    } catch {
      // Forbidden or full. The page still has them.
    }
  }
}

/** The messages that were queued in this tab before it was reloaded, with the ids of their chats. Forgets them. */
export function takeUnsent(): { conversation: string; text: string }[] {
  try {
    const stored = parseJson(sessionStorage.getItem(KEY));
    sessionStorage.removeItem(KEY);
    const isUnsent = (one: unknown) => typeof (one as { conversation?: unknown })?.conversation === "string" && typeof (one as { text?: unknown }).text === "string";
    return Array.isArray(stored) ? stored.filter(isUnsent) : [];
  } catch {
    return [];
  }
}
