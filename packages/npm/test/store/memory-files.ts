// Files in memory, in the place of a browser's.

import { StoreError, quota } from "../../src/store/error.js";
import type { FileReading, FileWriter, StoreFiles, StoreSpace } from "../../src/store/files.js";

export class MemoryFiles implements StoreFiles {
  readonly contents = new Map<string, Uint8Array>();
  /** Bytes all files together may take. */
  capacity: number;
  /** Whether `rename` works, as in most browsers. */
  renames = true;
  #writing = new Set<string>();

  constructor(capacity = Number.MAX_SAFE_INTEGER) {
    this.capacity = capacity;
  }

  async list(): Promise<string[]> {
    return [...this.contents.keys()];
  }

  async size(name: string): Promise<number | undefined> {
    return this.contents.get(name)?.length;
  }

  async readText(name: string): Promise<string | undefined> {
    const bytes = this.contents.get(name);
    return bytes && new TextDecoder().decode(bytes);
  }

  async writeText(name: string, text: string): Promise<void> {
    this.contents.set(name, new TextEncoder().encode(text));
  }

  async openWrite(name: string): Promise<FileWriter> {
    if (this.#writing.has(name)) throw new StoreError("storage.busy", `\`${name}\` is open elsewhere`, { file: name });
    this.#writing.add(name);
    const get = () => this.contents.get(name) ?? new Uint8Array();
    const resize = (size: number) => {
      const old = get();
      const grown = new Uint8Array(size);
      grown.set(old.subarray(0, size));
      this.contents.set(name, grown);
      return grown;
    };
    resize(get().length);
    return {
      size: async () => get().length,
      read: async (at, length) => get().slice(at, at + length),
      write: async (bytes, at) => {
        const end = at + bytes.length;
        const growth = Math.max(0, end - get().length);
        const free = this.capacity - this.#used();
        if (growth > free) throw quota(name, growth, free);
        const target = growth > 0 ? resize(end) : get();
        target.set(bytes, at);
      },
      truncate: async (size) => void resize(size),
      flush: async () => {},
      close: async () => void this.#writing.delete(name),
    };
  }

  async openRead(name: string): Promise<FileReading> {
    const bytes = this.#need(name);
    return {
      size: bytes.length,
      read: async (at, length) => bytes.slice(at, at + length),
      close: () => {},
    };
  }

  async rename(from: string, to: string): Promise<boolean> {
    if (!this.renames) return false;
    this.contents.set(to, this.#need(from));
    this.contents.delete(from);
    return true;
  }

  async remove(name: string): Promise<void> {
    this.contents.delete(name);
  }

  async file(name: string): Promise<File> {
    return new File([this.#need(name).slice()], name);
  }

  async space(): Promise<StoreSpace> {
    const usage = this.#used();
    return { usage, quota: this.capacity, free: this.capacity - usage, persisted: false };
  }

  #used(): number {
    let bytes = 0;
    for (const file of this.contents.values()) bytes += file.length;
    return bytes;
  }

  #need(name: string): Uint8Array {
    const bytes = this.contents.get(name);
    if (!bytes) throw new StoreError("storage.missing", `\`${name}\` is not stored`, { file: name });
    return bytes;
  }
}
