// Messages that the user sent while a reply was being written. They are sent in order when it ends.
//
// A reload ends the reply. What is queued then goes back into the drafts, by way of the tab's own `sessionStorage`.

import { signal } from "@preact/signals";
import { parseJson } from "../state/storage";
import { attachedTo, readAttachment, type Attachment, type Unsent } from "./attachments";
import { newId, type Conversation } from "./tree";

const KEY = "rullama.queue";

export interface QueuedMessage extends Readonly<Unsent> {
  readonly id: string;
  readonly conversation: Conversation;
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

  add(conversation: Conversation, text: string, attachments: readonly Attachment[] = []): void {
    this.#set([...this.#messages.peek(), { id: newId(), conversation, text, attachments }]);
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

  /** Removes the messages of a chat that was deleted; gives what was attached to them. */
  forget(conversation: string): Attachment[] {
    const isOf = (message: QueuedMessage) => message.conversation.id === conversation;
    const removed = this.#messages.peek().filter(isOf);
    this.#set(this.#messages.peek().filter((message) => !isOf(message)));
    return removed.flatMap(({ attachments }) => attachments);
  }

  /** The keys of everything that is attached to a queued message. */
  get attached(): string[] {
    return attachedTo(this.#messages.peek());
  }

  #set(messages: readonly QueuedMessage[]): void {
    this.#messages.value = messages;
    try {
      const stored = messages.map(({ conversation, text, attachments }) => ({ conversation: conversation.id, text, attachments }));
      sessionStorage.setItem(KEY, JSON.stringify(stored));
    } catch {
      // Forbidden or full. The page still has them.
    }
  }
}

/** The messages that were queued in this tab before it was reloaded, with the ids of their chats. Forgets them. */
export function takeUnsent(): ({ conversation: string } & Unsent)[] {
  try {
    const stored = parseJson(sessionStorage.getItem(KEY));
    sessionStorage.removeItem(KEY);
    return Array.isArray(stored) ? stored.flatMap((one) => readUnsent(one) ?? []) : [];
  } catch {
    return [];
  }
}

function readUnsent(one: unknown): ({ conversation: string } & Unsent) | undefined {
  const { conversation, text, attachments } = (one ?? {}) as Record<string, unknown>;
  if (typeof conversation !== "string" || typeof text !== "string") {
    return undefined;
  }
  const read = Array.isArray(attachments) ? attachments.flatMap((value) => readAttachment(value) ?? []) : [];
  return { conversation, text, attachments: read };
}
