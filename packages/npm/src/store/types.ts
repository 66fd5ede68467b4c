// The store as its users see it, whichever thread does the work.

import type { ByteSource } from "../source/types.js";
import type { ByteRange } from "./error.js";
import type { StoreSpace } from "./files.js";
import type { OnProgress } from "./progress.js";
import type { Proof } from "./record.js";

export interface StoredModel {
  name: string;
  /** Size of the complete file; 0 while it is not known. */
  bytes: number;
  /** Bytes stored so far; equal to `bytes` when complete. */
  storedBytes: number;
  complete: boolean;
  /** The SHA-256 of a complete file; for an incomplete one the SHA-256 that it must have, if known. */
  sha256?: string;
  /** How a complete file was checked: against a SHA-256 known beforehand, or only by its size. */
  proof?: Proof;
  url?: string;
  /** Milliseconds since 1970, as `Date.now()` gives. */
  addedAt: number;
  usedAt: number;
}

export interface WorkOptions {
  signal?: AbortSignal;
  onProgress?: OnProgress;
}

export interface DownloadOptions extends WorkOptions {
  /**
   * The name to store it under, for one URL only. Default: the last part of the URL's path; if a file from another URL has that name,
   * with the host and folders added in parentheses.
   */
  name?: string;
  /** The SHA-256 that it must have, as 64 hex digits, for one URL only. */
  sha256?: string;
  /** The size that it must have, for one URL only. */
  bytes?: number;
  headers?: HeadersInit;
  /**
   * Replaces a stored file of that name with the server's current one. The stored file is kept until the new one is complete. Nothing is
   * downloaded if the server's ETag or date shows that the file has not changed. Waits while the stored file is in use.
   */
  replace?: boolean;
}

export interface ImportOptions extends WorkOptions {
  /** The name to store it under. Default: the name of the `File`. */
  name?: string;
  sha256?: string;
  /** Replaces a stored file of that name, which is kept until this one is complete. */
  replace?: boolean;
}

export interface SourceOptions {
  /** Called as bytes are verified, which happens when they are first read. */
  onProgress?: OnProgress;
}

export interface VerifyOptions extends WorkOptions {
  /** Downloads damaged ranges again from the file's URL. */
  repair?: boolean;
  headers?: HeadersInit;
}

export interface Verification {
  name: string;
  bytes: number;
  sha256: string;
  /** The ranges that were damaged and have been repaired. */
  repaired: ByteRange[];
}

/**
 * Model files stored in the browser.
 *
 * Every failure is a `RullamaError` with a code: `storage.quota`, `storage.unavailable`, `storage.corrupt`, `storage.missing`,
 * `storage.busy`, `storage.exists`, `gguf.not_gguf`, codes of servers and files that start with `source.`, `option.*`, `cancelled`.
 */
export interface ModelStore {
  /** All files, complete or not, sorted by name. */
  list(): Promise<StoredModel[]>;
  /** Downloads a file. Resumes an earlier download; returns at once if the file is already stored. */
  download(url: string | URL, options?: DownloadOptions): Promise<StoredModel>;
  /** Downloads several files (the parts of a split model) one after another, each stored under its own name. */
  download(urls: readonly (string | URL)[], options?: DownloadOptions): Promise<StoredModel[]>;
  /** Stores a file from the user's disk. */
  import(blob: Blob, options?: ImportOptions): Promise<StoredModel>;
  /**
   * Opens a complete file for reading. It cannot be deleted, in any tab, until the source is closed. Each read is verified, and rejects
   * with `storage.corrupt` if the bytes differ from what was stored.
   */
  source(name: string, options?: SourceOptions): Promise<ByteSource>;
  /** Reads and verifies the whole file. Rejects with `storage.corrupt` if it is damaged. */
  verify(name: string, options?: VerifyOptions): Promise<Verification>;
  /** A complete file as a `File`, to save it elsewhere. */
  export(name: string): Promise<File>;
  /** Deletes a file, complete or not. Rejects with `storage.busy` while it is in use. */
  delete(name: string): Promise<void>;
  estimate(): Promise<StoreSpace>;
  /** Stops the store's worker. Open sources stay open. */
  close(): void;
}
