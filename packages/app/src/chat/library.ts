// All chats: kept in memory for listing and searching, and saved in IndexedDB. Other tabs are notified of changes.

import { signal } from "@preact/signals";
import { attachedTo } from "./attachments";
import { AttachmentStore } from "./attachment-store";
import { ConversationDatabase } from "./database";
import { baseOf, merge, type Base } from "./merge";
import { settle, type Conversation } from "./tree";

const CHANNEL = "rullama-conversations";

export class Library {
  /** The images and sounds of the chats. */
  readonly attachments: AttachmentStore;
  /** Changes with every change of a chat, so that readers of `all` and `get` are updated. */
  readonly #version = signal(0);
  readonly #replaced = signal<{ id: string } | undefined>(undefined);
  readonly #conversations = new Map<string, Conversation>();
  readonly #database: ConversationDatabase | undefined;
  readonly #channel: BroadcastChannel | undefined;
  /** Chats that this tab is writing; another tab's older copy must not replace them. */
  readonly #held = new Set<string>();
  /** Messages that this tab wrote. */
  readonly #written = new Set<string>();
  /** The stored chats as this tab last saw them. */
  readonly #bases = new Map<string, Base>();

  private constructor(database: ConversationDatabase | undefined) {
    this.#database = database;
    this.attachments = new AttachmentStore(database);
    if (database && "BroadcastChannel" in globalThis) {
      this.#channel = new BroadcastChannel(CHANNEL);
      this.#channel.addEventListener("message", ({ data }) => void this.#reread(String(data)));
    }
  }

  /** Opens the database. Where the browser forbids one, chats last as long as the page. */
  static async open(): Promise<Library> {
    let database: ConversationDatabase | undefined;
    let kept: Conversation[] = [];
    try {
      database = await ConversationDatabase.open();
      kept = await database.all();
    } catch {
      database = undefined;
    }
    const library = new Library(database);
    kept.forEach((conversation) => {
      library.#bases.set(conversation.id, baseOf(conversation));
      settle(conversation);
      library.#conversations.set(conversation.id, conversation);
    });
    return library;
  }

  /** The chat that another tab changed last. */
  get replaced(): { id: string } | undefined {
    return this.#replaced.value;
  }

  /** Whether chats outlive the page. */
  get lasting(): boolean {
    return this.#database !== undefined;
  }

  all(): Conversation[] {
    void this.#version.value;
    return [...this.#conversations.values()];
  }

  get(id: string): Conversation | undefined {
    void this.#version.value;
    return this.#conversations.get(id);
  }

  /** Records that this tab writes a message, so its version wins over the stored one. */
  wrote(message: string): void {
    this.#written.add(message);
  }

  /** Saves a chat, merged with the changes of other tabs. */
  async save(conversation: Conversation): Promise<void> {
    const { id } = conversation;
    this.#conversations.set(id, conversation);
    this.#changed();
    let more = false;
    let base = baseOf(conversation);
    await this.#database?.update(id, (stored) => {
      if (stored) {
        const merged = merge(stored, conversation, this.#bases.get(id), (message) => this.#written.has(message));
        more = merged.title !== conversation.title || merged.messages.some((message, index) => message !== conversation.messages[index]);
        Object.assign(conversation, merged);
      }
      base = baseOf(conversation);
      return conversation;
    });
    this.#bases.set(id, base);
    this.#channel?.postMessage(id);
    if (more) {
      this.#changed();
      this.#replaced.value = { id };
    }
  }

  /** Deletes a chat, and those of its attachments that neither another chat nor a draft has. */
  async delete(id: string, inDrafts: ReadonlySet<string> = new Set()): Promise<void> {
    const messages = this.#conversations.get(id)?.messages ?? [];
    this.#conversations.delete(id);
    this.#bases.delete(id);
    this.#changed();
    const used = new Set([...inDrafts, ...this.all().flatMap((other) => attachedTo(other.messages))]);
    const unused = attachedTo(messages).filter((attachment) => !used.has(attachment));
    this.attachments.forget(unused);
    await this.#database?.delete(id, unused);
    this.#channel?.postMessage(id);
  }

  /** Whether a chat has an attachment. */
  attaches(attachment: string): boolean {
    return [...this.#conversations.values()].some(({ messages }) => attachedTo(messages).includes(attachment));
  }

  hold(id: string): () => void {
    this.#held.add(id);
    return () => this.#held.delete(id);
  }

  #changed(): void {
    this.#version.value += 1;
  }

  /** Takes over the changes of another tab. */
  async #reread(id: string): Promise<void> {
    if (this.#held.has(id)) {
      return;
    }
    const conversation = await this.#database?.get(id).catch(() => undefined);
    if (conversation) {
      this.#bases.set(id, baseOf(conversation));
      const known = this.#conversations.get(id);
      // Components keep a reference to the object that they show.
      this.#conversations.set(id, known ? Object.assign(known, conversation) : conversation);
    } else {
      this.#bases.delete(id);
      this.#conversations.delete(id);
    }
    this.#changed();
    this.#replaced.value = { id };
  }
}
