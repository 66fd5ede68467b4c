// A file in the browser's own storage (the origin private file system).
//
// In a dedicated worker it is read through a synchronous access handle, if several may be open at once; that avoids a promise per read.
// Elsewhere it is read as a blob.

import { RullamaError } from "../errors.js";
import type { FileReading } from "../store/files.js";
import { checkRange } from "./memory.js";
import type { ByteSource } from "./types.js";

/** The part of a synchronous access handle that reading needs. In early browsers its methods return promises. */
interface SyncHandle {
  getSize(): number | Promise<number>;
  read(buffer: Uint8Array, options: { at: number }): number | Promise<number>;
  close(): void | Promise<void>;
}

interface FileHandle {
  getFile(): Promise<File>;
  createSyncAccessHandle?(options?: { mode: "read-only" }): Promise<SyncHandle>;
}

/** Opens the file at `path`, in which slashes separate folders. */
export async function opfsSource(path: string): Promise<ByteSource> {
  const handle = await find(path);
  const file = await readable(path, () => openReading(handle));
  const source: ByteSource = {
    name: path,
    length: file.size,
    async read(offset, length) {
      checkRange(source, offset, length);
      const bytes = await readable(path, () => file.read(offset, length));
      if (bytes.length !== length) {
        const found = offset + bytes.length;
        throw new RullamaError("source.truncated", `\`${path}\` ends at byte ${found} instead of ${source.length}.`);
      }
      return bytes;
    },
    close: () => file.close(),
  };
  return source;
}

/** Opens a file for reading, next to any number of other readers. A read past the end gives fewer bytes. */
export async function openReading(handle: FileHandle): Promise<FileReading> {
  if (sharesReading() && handle.createSyncAccessHandle) {
    try {
      return await readHandle(await handle.createSyncAccessHandle({ mode: "read-only" }));
    } catch {
      // Another handle locks the file; it can still be read as a blob.
    }
  }
  return readBlob(await handle.getFile());
}

/** Whether several synchronous handles may read one file. A browser that ignores the mode would lock other readers out. */
function sharesReading(): boolean {
  const type = (globalThis as { FileSystemSyncAccessHandle?: { prototype: object } }).FileSystemSyncAccessHandle;
  return type !== undefined && "mode" in type.prototype;
}

async function readHandle(handle: SyncHandle): Promise<FileReading> {
  return {
    size: await handle.getSize(),
    async read(at, length) {
      const bytes = new Uint8Array(length);
      let done = 0;
      while (done < length) {
        const read = await handle.read(bytes.subarray(done), { at: at + done });
        if (read === 0) {
          break;
        }
        done += read;
      }
      return bytes.subarray(0, done);
    },
    close: () => void handle.close(),
  };
}

function readBlob(file: File): FileReading {
  return {
    size: file.size,
    read: async (at, length) => new Uint8Array(await file.slice(at, at + length).arrayBuffer()),
    close: () => {},
  };
}

async function find(path: string): Promise<FileHandle> {
  const folders = path.split("/").filter(Boolean);
  const file = folders.pop();
  return readable(path, async () => {
    if (!file) {
      throw new Error("the name is empty");
    }
    let folder = await navigator.storage.getDirectory();
    for (const name of folders) {
      folder = await folder.getDirectoryHandle(name);
    }
    return folder.getFileHandle(file);
  });
}

async function readable<T>(path: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new RullamaError("source.io", `\`${path}\` cannot be read from the browser's storage: ${reason}`, { cause });
  }
}
