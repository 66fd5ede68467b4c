// Chats in IndexedDB, one record each.

import type { Conversation } from "./tree";

const NAME = "rullama";
const STORE = "conversations";

export class ConversationDatabase {
  readonly #database: IDBDatabase;

  private constructor(database: IDBDatabase) {
    this.#database = database;
    // Another tab opens a newer version; an open connection would block it.
    database.addEventListener("versionchange", () => database.close());
  }

  static async open(): Promise<ConversationDatabase> {
    const request = indexedDB.open(NAME, 1);
    request.addEventListener("upgradeneeded", () => request.result.createObjectStore(STORE, { keyPath: "id" }));
    return new ConversationDatabase(await settled(request));
  }

  all(): Promise<Conversation[]> {
    return settled(this.#store("readonly").getAll());
  }

  get(id: string): Promise<Conversation | undefined> {
    return settled(this.#store("readonly").get(id));
  }

  /** Replaces the stored chat in one transaction, so that no other tab can write in between. */
  async update(id: string, change: (stored: Conversation | undefined) => Conversation): Promise<void> {
    const store = this.#store("readwrite");
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

  async delete(id: string): Promise<void> {
    const store = this.#store("readwrite");
    store.delete(id);
    await finished(store.transaction);
  }

  #store(mode: IDBTransactionMode): IDBObjectStore {
    return this.#database.transaction(STORE, mode).objectStore(STORE);
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
