// A file in the browser's own storage (the origin private file system).
//
// In a dedicated worker it is read through a synchronous access handle, which costs no promise per read; elsewhere there
// are no such handles, and the file is read as a blob.

import { RullamaError } from "../errors.js";
import { blobSource, checkRange } from "./memory.js";
import type { ByteSource } from "./types.js";

/** The part of a synchronous access handle that reading needs. */
interface SyncHandle {
  getSize(): number;
  read(buffer: Uint8Array, options: { at: number }): number;
  close(): void;
}

interface FileHandle {
  getFile(): Promise<File>;
  createSyncAccessHandle?(options?: { mode: "read-only" }): Promise<SyncHandle>;
}

/** Opens the file at `path`, in which slashes separate folders. */
export async function opfsSource(path: string): Promise<ByteSource> {
  const handle = await find(path);
  if (typeof handle.createSyncAccessHandle === "function") {
    try {
      // Several readers may have the file open, where the browser knows of modes.
      return syncSource(path, await handle.createSyncAccessHandle({ mode: "read-only" }));
    } catch {
      // Somebody else holds the file; as a blob it can be read all the same.
    }
  }
  return blobSource(await handle.getFile(), path);
}

async function find(path: string): Promise<FileHandle> {
  const folders = path.split("/").filter(Boolean);
  const file = folders.pop();
  try {
    if (!file) {
      throw new Error("the name is empty");
    }
    let folder = await navigator.storage.getDirectory();
    for (const name of folders) {
      folder = await folder.getDirectoryHandle(name);
    }
    return (await folder.getFileHandle(file)) as FileHandle;
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new RullamaError("source.io", `\`${path}\` cannot be opened in the browser's storage: ${reason}`, { cause });
  }
}

function syncSource(name: string, handle: SyncHandle): ByteSource {
  const source: ByteSource = {
    name,
    length: handle.getSize(),
    async read(offset, length) {
      checkRange(source, offset, length);
      const bytes = new Uint8Array(length);
      let done = 0;
      while (done < length) {
        const read = handle.read(bytes.subarray(done), { at: offset + done });
        if (read === 0) {
          const found = offset + done;
          throw new RullamaError("source.truncated", `\`${name}\` ended at byte ${found}; ${source.length} were expected`);
        }
        done += read;
      }
      return bytes;
    },
    close: () => handle.close(),
  };
  return source;
}
