// Unsent messages. Each chat has its own; they survive a reload.

import { signal } from "@preact/signals";
import { loadJson, save } from "../state/storage";
import type { Conversation } from "./tree";

const KEY = "rullama.drafts";

/** The key of the draft of a chat that has no messages yet. Such a chat gets a new id after a reload. */
const NEW = "new";

type Texts = Readonly<Record<string, string>>;

export class Drafts {
  readonly #texts = signal<Texts>(read());

  get(conversation: Conversation): string {
    return this.#texts.value[keyOf(conversation)] ?? "";
  }

  set(conversation: Conversation, text: string): void {
    this.#put(keyOf(conversation), text);
  }

  /** Puts a text before the draft of a chat, for example a message that could not be sent. */
  giveBack(conversation: Conversation, text: string): void {
    const draft = this.get(conversation);
    this.set(conversation, draft.trim() === "" ? text : `${text}\n\n${draft}`);
  }

  /** Removes the draft of a chat that was deleted. */
  forget(id: string): void {
    this.#put(id, "");
  }

  #put(key: string, text: string): void {
    const change = (texts: Texts): Texts => {
      const { [key]: _, ...rest } = texts;
      return text === "" ? rest : { ...rest, [key]: text };
    };
    this.#texts.value = change(this.#texts.peek());
    // Other tabs may have written drafts of other chats.
    save(KEY, JSON.stringify(change(read())));
  }
}

function keyOf({ id, messages }: Conversation): string {
  return messages.length === 0 ? NEW : id;
}

function read(): Texts {
  const stored = loadJson(KEY);
  if (typeof stored !== "object" || stored === null) {
    return {};
  }
  return Object.fromEntries(Object.entries(stored).filter(([, text]) => typeof text === "string"));
}
