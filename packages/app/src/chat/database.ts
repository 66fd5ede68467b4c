// Conversations in IndexedDB, one record each.

import type { Conversation } from "./tree";

const NAME = "rullama";
const STORE = "conversations";

export class ConversationDatabase {
  readonly #database: IDBDatabase;

  private constructor(database: IDBDatabase) {
    this.#database = database;
    // Another tab brings a newer version; standing in its way would hang it.
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

  async put(conversation: Conversation): Promise<void> {
    await settled(this.#store("readwrite").put(conversation));
  }

  async delete(id: string): Promise<void> {
    await settled(this.#store("readwrite").delete(id));
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
