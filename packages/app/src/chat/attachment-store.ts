// The content of images and sounds: kept in IndexedDB beside the chats, or in memory where the browser forbids that.

import type { ConversationDatabase } from "./database";
import { newId } from "./tree";

/** Milliseconds that an attachment is kept although no chat and no draft has it: another tab may have queued it. */
const KEPT = 24 * 60 * 60 * 1000;

export class AttachmentStore {
  readonly #database: ConversationDatabase | undefined;
  /** What could not be stored. It lasts as long as the page. */
  readonly #memory = new Map<string, Blob>();

  constructor(database: ConversationDatabase | undefined) {
    this.#database = database;
  }

  /** Keeps a content; gives its key, and whether it outlives the page. */
  async add(content: Blob): Promise<{ id: string; lasting: boolean }> {
    const id = newId();
    const lasting = await this.#stored(id, content);
    if (!lasting) {
      this.#memory.set(id, content);
    }
    return { id, lasting };
  }

  /** The content; undefined if it is gone. */
  async get(id: string): Promise<Blob | undefined> {
    return this.#memory.get(id) ?? (await this.#database?.attachment(id).catch(() => undefined));
  }

  /** Frees the memory of attachments that are not stored. */
  forget(ids: readonly string[]): void {
    ids.forEach((id) => this.#memory.delete(id));
  }

  /** Deletes those of these attachments that no stored chat has. */
  async free(ids: readonly string[]): Promise<void> {
    this.forget(ids);
    // What can't be deleted now is swept at another start.
    await this.#database?.deleteAttachments(ids).catch(() => {});
  }

  /** Deletes what neither a chat nor a draft has any more, for example after a tab was closed while a message was queued. */
  async sweep(inDrafts: ReadonlySet<string>, now: number): Promise<void> {
    const old = (await this.#database?.attachmentsBefore(now - KEPT).catch(() => [])) ?? [];
    const unused = old.filter((id) => !inDrafts.has(id));
    if (unused.length > 0) {
      await this.free(unused);
    }
  }

  async #stored(id: string, content: Blob): Promise<boolean> {
    try {
      await this.#database?.addAttachment(id, content, Date.now());
      return this.#database !== undefined;
    } catch {
      // Full, or a browser that stores no blobs.
      return false;
    }
  }
}
