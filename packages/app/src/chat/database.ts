// Chats and their attachments in IndexedDB: one record for each chat, and one for each image or sound.

import { attachedTo } from "./attachments";
import type { Conversation } from "./tree";

const NAME = "rullama";
const VERSION = 2;
const CHATS = "conversations";
const ATTACHMENTS = "attachments";

interface StoredAttachment {
  id: string;
  content: Blob;
  addedAt: number;
}

export class ConversationDatabase {
  readonly #database: IDBDatabase;

  private constructor(database: IDBDatabase) {
    this.#database = database;
    // Another tab opens a newer version; an open connection would block it.
    database.addEventListener("versionchange", () => database.close());
  }

  static async open(): Promise<ConversationDatabase> {
    const request = indexedDB.open(NAME, VERSION);
    request.addEventListener("upgradeneeded", ({ oldVersion }) => upgrade(request.result, oldVersion));
    return new ConversationDatabase(await settled(request));
  }

  all(): Promise<Conversation[]> {
    return settled(this.#store(CHATS, "readonly").getAll());
  }

  get(id: string): Promise<Conversation | undefined> {
    return settled(this.#store(CHATS, "readonly").get(id));
  }

  /** Replaces the stored chat in one transaction, so that no other tab can write in between. */
  async update(id: string, change: (stored: Conversation | undefined) => Conversation): Promise<void> {
    const store = this.#store(CHATS, "readwrite");
    const request: IDBRequest<Conversation | undefined> = store.get(id);
    let failure: unknown;
    request.addEventListener("success", () => {
      try {
        store.put(change(request.result));
      } catch (error) {
        failure = error;
        store.transaction.abort();
      }
    });
    await finished(store.transaction).catch((error: unknown) => {
      throw failure ?? error;
    });
  }

  /** Deletes a chat, and those of these attachments that no other chat has. */
  async delete(id: string, attachments: readonly string[]): Promise<void> {
    const transaction = this.#database.transaction([CHATS, ATTACHMENTS], "readwrite");
    transaction.objectStore(CHATS).delete(id);
    this.#deleteUnused(transaction, attachments);
    await finished(transaction);
  }

  /** The content of an image or sound. */
  async attachment(id: string): Promise<Blob | undefined> {
    const stored: StoredAttachment | undefined = await settled(this.#store(ATTACHMENTS, "readonly").get(id));
    return stored?.content;
  }

  async addAttachment(id: string, content: Blob, addedAt: number): Promise<void> {
    const store = this.#store(ATTACHMENTS, "readwrite");
    const stored: StoredAttachment = { id, content, addedAt };
    store.put(stored);
    await finished(store.transaction);
  }

  /** Deletes those of these attachments that no chat has. */
  async deleteAttachments(ids: readonly string[]): Promise<void> {
    const transaction = this.#database.transaction([CHATS, ATTACHMENTS], "readwrite");
    this.#deleteUnused(transaction, ids);
    await finished(transaction);
  }

  /** The attachments that were added before a time. */
  async attachmentsBefore(time: number): Promise<string[]> {
    const index = this.#store(ATTACHMENTS, "readonly").index("addedAt");
    return (await settled(index.getAllKeys(IDBKeyRange.upperBound(time)))) as string[];
  }

  /** Looks into all stored chats, in the same transaction: another tab may have sent a message meanwhile. */
  #deleteUnused(transaction: IDBTransaction, ids: readonly string[]): void {
    if (ids.length === 0) {
      return;
    }
    const chats: IDBRequest<Conversation[]> = transaction.objectStore(CHATS).getAll();
    chats.addEventListener("success", () => {
      const used = new Set(chats.result.flatMap(({ messages }) => attachedTo(messages)));
      ids.filter((id) => !used.has(id)).forEach((id) => transaction.objectStore(ATTACHMENTS).delete(id));
    });
  }

  #store(name: string, mode: IDBTransactionMode): IDBObjectStore {
    return this.#database.transaction(name, mode).objectStore(name);
  }
}

/** Brings the database to this version. Chats of version 1 have no attachments, so they stay as they are. */
function upgrade(database: IDBDatabase, from: number): void {
  if (from < 1) {
    database.createObjectStore(CHATS, { keyPath: "id" });
  }
  if (from < 2) {
    database.createObjectStore(ATTACHMENTS, { keyPath: "id" }).createIndex("addedAt", "addedAt");
  }
}

function settled<T>(request: IDBRequest<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    request.addEventListener("success", () => resolve(request.result));
    request.addEventListener("error", () => reject(request.error));
  });
}

/** Waits for the whole transaction: a full disk is often reported only after every request has succeeded. */
function finished(transaction: IDBTransaction): Promise<void> {
  return new Promise((resolve, reject) => {
    transaction.addEventListener("complete", () => resolve());
    transaction.addEventListener("abort", () => reject(transaction.error ?? new Error("the browser aborted the transaction")));
  });
}
