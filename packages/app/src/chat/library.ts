// All conversations: in memory to be listed and searched, in IndexedDB to stay. Other tabs are told of changes.

import { Emitter } from "../state/emitter";
import { ConversationDatabase } from "./database";
import { baseOf, merge, type Base } from "./merge";
import { settle, type Conversation } from "./tree";

const CHANNEL = "rullama-conversations";

export class Library {
  readonly changed = new Emitter();
  /** Another tab changed the conversation of this id. */
  readonly replaced = new Emitter<string>();
  readonly #conversations = new Map<string, Conversation>();
  readonly #database: ConversationDatabase | undefined;
  readonly #channel: BroadcastChannel | undefined;
  /** Conversations that are being written here; another tab's older copy must not replace them. */
  readonly #held = new Set<string>();
  /** Messages that were written in this tab. */
  readonly #written = new Set<string>();
  /** Conversations as they were stored when this tab last looked. */
  readonly #bases = new Map<string, Base>();

  private constructor(database: ConversationDatabase | undefined) {
    this.#database = database;
    if (database && "BroadcastChannel" in globalThis) {
      this.#channel = new BroadcastChannel(CHANNEL);
      this.#channel.addEventListener("message", ({ data }) => void this.#reread(String(data)));
    }
  }

  /** Opens what is kept. Where nothing may be kept, conversations last as long as the page. */
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

  /** Whether conversations outlive the page. */
  get lasting(): boolean {
    return this.#database !== undefined;
  }

  all(): Conversation[] {
    return [...this.#conversations.values()];
  }

  get(id: string): Conversation | undefined {
    return this.#conversations.get(id);
  }

  /** A message of this tab: nobody else knows better what it says. */
  wrote(message: string): void {
    this.#written.add(message);
  }

  /** Keeps a conversation as it is now, together with what other tabs have added to it. */
  async save(conversation: Conversation): Promise<void> {
    const { id } = conversation;
    this.#conversations.set(id, conversation);
    this.changed.emit();
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
      this.changed.emit();
      this.replaced.emit(id);
    }
  }

  async delete(id: string): Promise<void> {
    this.#conversations.delete(id);
    this.#bases.delete(id);
    this.changed.emit();
    await this.#database?.delete(id);
    this.#channel?.postMessage(id);
  }

  hold(id: string): () => void {
    this.#held.add(id);
    return () => this.#held.delete(id);
  }

  /** Takes over what another tab did. */
  async #reread(id: string): Promise<void> {
    if (this.#held.has(id)) {
      return;
    }
    const conversation = await this.#database?.get(id).catch(() => undefined);
    if (conversation) {
      this.#bases.set(id, baseOf(conversation));
      const known = this.#conversations.get(id);
      // Views hold on to the object they show.
      this.#conversations.set(id, known ? Object.assign(known, conversation) : conversation);
    } else {
      this.#bases.delete(id);
      this.#conversations.delete(id);
    }
    this.changed.emit();
    this.replaced.emit(id);
  }
}
