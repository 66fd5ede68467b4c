// Unsent messages. Each chat has its own; they survive a reload.

import { signal, type Signal } from "@preact/signals";
import { loadJson, save } from "../state/storage";
import { readAttachment, type Attachment, type Unsent } from "./attachments";
import type { Conversation } from "./tree";

const TEXTS = "rullama.drafts";
const ATTACHMENTS = "rullama.drafts.attachments";

/** The key of the draft of a chat that has no messages yet. Such a chat gets a new id after a reload. */
const NEW = "new";

type ByChat<T> = Readonly<Record<string, T>>;

export class Drafts {
  readonly #texts = signal(readTexts());
  readonly #attachments = signal(readAttachments());

  get(conversation: Conversation): string {
    return this.#texts.value[keyOf(conversation)] ?? "";
  }

  set(conversation: Conversation, text: string): void {
    put(this.#texts, TEXTS, readTexts, keyOf(conversation), text === "" ? undefined : text);
  }

  /** The images and sounds of the draft. */
  attachments(conversation: Conversation): readonly Attachment[] {
    return this.#attachments.value[keyOf(conversation)] ?? [];
  }

  attach(conversation: Conversation, ...attachments: readonly Attachment[]): void {
    this.#setAttachments(keyOf(conversation), [...this.attachments(conversation), ...attachments]);
  }

  detach(conversation: Conversation, id: string): void {
    this.#setAttachments(
      keyOf(conversation),
      this.attachments(conversation).filter((one) => one.id !== id),
    );
  }

  /** Empties the draft and gives what it was. */
  take(conversation: Conversation): Unsent {
    const unsent = { text: this.get(conversation), attachments: this.attachments(conversation) };
    this.set(conversation, "");
    this.#setAttachments(keyOf(conversation), []);
    return unsent;
  }

  /** Puts a message before the draft of a chat, for example one that could not be sent. */
  giveBack(conversation: Conversation, { text, attachments }: Unsent): void {
    const draft = this.get(conversation);
    this.set(conversation, draft.trim() === "" ? text : text === "" ? draft : `${text}\n\n${draft}`);
    this.#setAttachments(keyOf(conversation), [...attachments, ...this.attachments(conversation)]);
  }

  /** Removes the draft of a chat that was deleted; gives what was attached to it. */
  forget(id: string): readonly Attachment[] {
    const attachments = this.#attachments.peek()[id] ?? [];
    put(this.#texts, TEXTS, readTexts, id, undefined);
    this.#setAttachments(id, []);
    return attachments;
  }

  /** The keys of everything that is attached to a draft, in any tab. */
  get attached(): Set<string> {
    const all = [...Object.values(readAttachments()), ...Object.values(this.#attachments.peek())];
    return new Set(all.flat().map(({ id }) => id));
  }

  #setAttachments(key: string, attachments: readonly Attachment[]): void {
    put(this.#attachments, ATTACHMENTS, readAttachments, key, attachments.length === 0 ? undefined : attachments);
  }
}

/** Changes the draft of one chat. Other tabs may have written drafts of other chats, which stay as they are stored. */
function put<T>(drafts: Signal<ByChat<T>>, name: string, stored: () => ByChat<T>, key: string, value: T | undefined): void {
  const change = (before: ByChat<T>): ByChat<T> => {
    const { [key]: _, ...rest } = before;
    return value === undefined ? rest : { ...rest, [key]: value };
  };
  drafts.value = change(drafts.peek());
  save(name, JSON.stringify(change(stored())));
}

function keyOf({ id, messages }: Conversation): string {
  return messages.length === 0 ? NEW : id;
}

function readTexts(): ByChat<string> {
  return Object.fromEntries(entries(TEXTS).filter((entry): entry is [string, string] => typeof entry[1] === "string"));
}

function readAttachments(): ByChat<readonly Attachment[]> {
  const read = (value: unknown) => (Array.isArray(value) ? value.map(readAttachment).filter((one) => one !== undefined) : []);
  return Object.fromEntries(entries(ATTACHMENTS).map(([key, value]) => [key, read(value)]));
}

function entries(name: string): [string, unknown][] {
  const stored = loadJson(name);
  return typeof stored === "object" && stored !== null ? Object.entries(stored) : [];
}
