// Files of the origin's private file system (OPFS).
//
// Writing goes through sync access handles, which exist in dedicated workers only: they write in place, where the
// streams of a window copy the whole file first.

import { openReading } from "../source/opfs.js";
import { StoreError, quota } from "./error.js";
import type { FileReading, FileWriter, StoreFiles, StoreSpace } from "./files.js";

// The parts of the interface that TypeScript's library knows for workers only, or not at all. Browsers from
// before the methods became synchronous return promises, so every call is awaited.
interface SyncHandle {
  read(buffer: Uint8Array, options: { at: number }): number | Promise<number>;
  write(buffer: Uint8Array, options: { at: number }): number | Promise<number>;
  truncate(size: number): void | Promise<void>;
  getSize(): number | Promise<number>;
  flush(): void | Promise<void>;
  close(): void | Promise<void>;
}
interface SyncFileHandle {
  createSyncAccessHandle?(): Promise<SyncHandle>;
  move?(name: string): Promise<void>;
}

export class OpfsFiles implements StoreFiles {
  readonly #folder: FileSystemDirectoryHandle;

  private constructor(folder: FileSystemDirectoryHandle) {
    this.#folder = folder;
  }

  /** Opens a folder at the root of the origin's private file system; made when missing. */
  static async open(folder: string): Promise<OpfsFiles> {
    const storage = globalThis.navigator?.storage;
    if (typeof storage?.getDirectory !== "function") {
      throw new StoreError("storage.unavailable", "The browser offers no storage for files on this page. The page must be served over https or from localhost.");
    }
    try {
      let handle = await storage.getDirectory();
      for (const name of folder.split("/").filter(Boolean)) handle = await handle.getDirectoryHandle(name, { create: true });
      return new OpfsFiles(handle);
    } catch (cause) {
      throw new StoreError("storage.unavailable", `The browser does not allow this page to store files: ${textOf(cause)}`, {}, { cause });
    }
  }

  async list(): Promise<string[]> {
    return this.#translate(this.#folder.name, async () => {
      const names: string[] = [];
      for await (const [name, handle] of this.#folder.entries()) {
        if (handle.kind === "file") names.push(name);
      }
      return names;
    });
  }

  async size(name: string): Promise<number | undefined> {
    return (await this.#find(name))?.size;
  }

  async readText(name: string): Promise<string | undefined> {
    const file = await this.#find(name);
    return file && this.#translate(name, () => file.text());
  }

  async writeText(name: string, text: string): Promise<void> {
    const write = async () => {
      const handle = await this.#folder.getFileHandle(name, { create: true });
      if (typeof handle.createWritable === "function") {
        // A stream writes to a copy and replaces the file when closed, so a crash leaves the old text.
        const stream = await handle.createWritable();
        await stream.write(text);
        await stream.close();
        return;
      }
      // Where there are no streams a crash can leave half a text. The store takes such a record for none.
      const writer = await this.openWrite(name);
      try {
        await writer.truncate(0);
        await writer.write(new TextEncoder().encode(text), 0);
        await writer.flush();
      } finally {
        await writer.close();
      }
    };
    await this.#translate(name, write, text.length);
  }

  async openWrite(name: string): Promise<FileWriter> {
    const handle = await this.#translate(name, async () => {
      const file = (await this.#folder.getFileHandle(name, { create: true })) as SyncFileHandle;
      if (!file.createSyncAccessHandle) {
        throw new StoreError("storage.unavailable", "Files can be written only from a dedicated worker.");
      }
      return file.createSyncAccessHandle();
    });
    return {
      size: async () => handle.getSize(),
      read: (at, length) => this.#translate(name, async () => {
        const bytes = new Uint8Array(length);
        return bytes.subarray(0, await handle.read(bytes, { at }));
      }),
      write: (bytes, at) => this.#translate(name, async () => {
        const written = await handle.write(bytes, { at });
        if (written !== bytes.length) throw new DOMException(`${written} of ${bytes.length} bytes written`, "QuotaExceededError");
      }, bytes.length),
      truncate: (size) => this.#translate(name, async () => handle.truncate(size)),
      flush: () => this.#translate(name, async () => handle.flush()),
      close: async () => handle.close(),
    };
  }

  async openRead(name: string): Promise<FileReading> {
    return this.#translate(name, async () => {
      const file = await openReading(await this.#folder.getFileHandle(name));
      return { size: file.size, read: (at, length) => this.#translate(name, () => file.read(at, length)), close: () => file.close() };
    });
  }

  async rename(from: string, to: string): Promise<boolean> {
    return this.#translate(from, async () => {
      const handle = (await this.#folder.getFileHandle(from)) as SyncFileHandle;
      if (!handle.move) return false;
      await handle.move(to);
      return true;
    });
  }

  async remove(name: string): Promise<void> {
    await this.#translate(name, async () => {
      try {
        await this.#folder.removeEntry(name);
      } catch (error) {
        if (nameOf(error) !== "NotFoundError") throw error;
      }
    });
  }

  async file(name: string): Promise<File> {
    return this.#translate(name, async () => (await this.#folder.getFileHandle(name)).getFile());
  }

  async space(): Promise<StoreSpace> {
    const storage = navigator.storage;
    // A browser that does not say is no reason to fail.
    const { usage, quota: granted } = (await storage.estimate?.().catch(() => undefined)) ?? {};
    const persisted = (await storage.persisted?.().catch(() => undefined)) ?? false;
    return {
      ...(usage === undefined ? {} : { usage }),
      ...(granted === undefined ? {} : { quota: granted }),
      ...(usage === undefined || granted === undefined ? {} : { free: Math.max(0, granted - usage) }),
      persisted,
    };
  }

  async #find(name: string): Promise<File | undefined> {
    try {
      return await (await this.#folder.getFileHandle(name)).getFile();
    } catch (error) {
      if (nameOf(error) === "NotFoundError") return undefined;
      throw translated(name, error);
    }
  }

  /** Does `work`, which may write `needed` more bytes to `name`. */
  async #translate<T>(name: string, work: () => Promise<T>, needed = 0): Promise<T> {
    try {
      return await work();
    } catch (error) {
      if (nameOf(error) === "QuotaExceededError") throw quota(name, needed, (await this.space()).free, { cause: error });
      throw translated(name, error);
    }
  }
}

function translated(name: string, error: unknown): unknown {
  if (error instanceof StoreError) return error;
  const fail = (code: "storage.busy" | "storage.missing" | "storage.unavailable", message: string) =>
    new StoreError(code, message, { file: name }, { cause: error });
  switch (nameOf(error)) {
    case "NotFoundError":
      return fail("storage.missing", `\`${name}\` is not stored.`);
    case "NoModificationAllowedError":
    case "InvalidStateError":
      return fail("storage.busy", `\`${name}\` is open elsewhere: ${textOf(error)}`);
    default:
      return fail("storage.unavailable", `The browser could not access \`${name}\`: ${textOf(error)}`);
  }
}

function nameOf(error: unknown): string {
  return error instanceof Error ? error.name : "";
}

function textOf(error: unknown): string {
  return error instanceof Error ? `${error.name}: ${error.message}` : String(error);
}
