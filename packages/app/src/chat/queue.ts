// Messages that the user sent while a reply was being written. They are sent in order when it ends.

import { signal } from "@preact/signals";
import { newId, type Conversation } from "./tree";

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
    this.#messages.value = [...this.#messages.peek(), { id: newId(), conversation, text }];
  }

  /** Removes a message; gives it if it was still queued. */
  remove(id: string): QueuedMessage | undefined {
    const found = this.#messages.peek().find((message) => message.id === id);
    this.#messages.value = this.#messages.peek().filter((message) => message !== found);
    return found;
  }

  /** Removes and gives the oldest message. */
  next(): QueuedMessage | undefined {
    const [first] = this.#messages.peek();
    return first && this.remove(first.id);
  }

  /** Removes the messages of a chat that was deleted. */
  forget(conversation: string): void {
    this.#messages.value = this.#messages.peek().filter((message) => message.conversation.id !== conversation);
  }
}
