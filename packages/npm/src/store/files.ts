// What the store asks of a file system: a flat folder, written by one and read by many.
//
// The store's logic knows only this, so it runs the same over OPFS in a worker and over memory in a test.
// Failures are `StoreError`s: `storage.quota` when a write finds no room, `storage.busy` when a file is open
// elsewhere, `storage.missing` when it is gone.

export interface StoreFiles {
  /** Names of all files in the folder. */
  list(): Promise<string[]>;
  /** Bytes of a file; undefined when there is none. */
  size(name: string): Promise<number | undefined>;
  readText(name: string): Promise<string | undefined>;
  /** Replaces a file's text. After a crash it holds the old text or the new, never a mixture. */
  writeText(name: string, text: string): Promise<void>;
  /** Opens for writing, keeping what is there; made when missing. One writer at a time. */
  openWrite(name: string): Promise<FileWriter>;
  /** Opens for reading, next to any number of other readers, in other tabs too. */
  openRead(name: string): Promise<FileReading>;
  /** Renames; false where the platform cannot, and then nothing has changed. */
  rename(from: string, to: string): Promise<boolean>;
  /** Removes; nothing happens when there is none. */
  remove(name: string): Promise<void>;
  /** The file as a `File`, for saving or uploading; its bytes stay where they are. */
  file(name: string): Promise<File>;
  space(): Promise<StoreSpace>;
}

export interface FileWriter {
  size(): Promise<number>;
  /** Reads; beyond the end, what there is. */
  read(at: number, length: number): Promise<Uint8Array>;
  write(bytes: Uint8Array, at: number): Promise<void>;
  truncate(size: number): Promise<void>;
  /** Resolves when what was written would survive a crash. */
  flush(): Promise<void>;
  close(): Promise<void>;
}

export interface FileReading {
  readonly size: number;
  /** Reads; beyond the end, what there is. */
  read(at: number, length: number): Promise<Uint8Array>;
  close(): void;
}

/** What the browser grants this origin. A number is missing where it does not say. */
export interface StoreSpace {
  usage?: number;
  quota?: number;
  /** `quota - usage`. */
  free?: number;
  /** Whether the browser promised not to evict the files on its own. */
  persisted: boolean;
}
