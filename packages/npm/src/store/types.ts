// The store as its users see it, whichever thread does the work.

import type { ByteSource } from "../source/types.js";
import type { ByteRange } from "./error.js";
import type { StoreSpace } from "./files.js";
import type { OnProgress } from "./progress.js";
import type { Proof } from "./record.js";

export interface StoredModel {
  name: string;
  /** Size of the whole file; 0 while it is not known. */
  bytes: number;
  /** Bytes on disk; equal to `bytes` when complete. */
  storedBytes: number;
  complete: boolean;
  /** Digest of a complete file; of an incomplete one what it must become, where known. */
  sha256?: string;
  /** Of a complete file: whether a SHA-256 known beforehand vouched for it, or its size alone. */
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
   * What to call it. For one address only. Unless told, the last piece of the address; where a file from elsewhere has that
   * name, host and folders stand in brackets behind it.
   */
  name?: string;
  /** The digest it must have, as 64 hex digits. For one address only. */
  sha256?: string;
  /** The size it must have. For one address only. */
  bytes?: number;
  headers?: HeadersInit;
  /**
   * Fetch what is there now, in place of a stored file of that name, which is kept until the new one is whole. Nothing is
   * fetched where the server's ETag or date shows that the stored one is the same. Waits while the stored one is being read.
   */
  replace?: boolean;
}

export interface ImportOptions extends WorkOptions {
  /** What to call it; a `File`'s own name unless told. */
  name?: string;
  sha256?: string;
  /** Store it in place of another file of that name, which is kept until this one is whole. */
  replace?: boolean;
}

export interface SourceOptions {
  /** Told how much has been checked. Each byte is when it is first read. */
  onProgress?: OnProgress;
}

export interface VerifyOptions extends WorkOptions {
  /** Fetch damaged parts again from where the file came from. */
  repair?: boolean;
  headers?: HeadersInit;
}

export interface Verification {
  name: string;
  bytes: number;
  sha256: string;
  /** What was damaged and has been repaired; empty when nothing was. */
  repaired: ByteRange[];
}

/**
 * Model files kept by the browser.
 *
 * Every failure is a `RullamaError` with a code: `storage.quota`, `storage.unavailable`, `storage.corrupt`, `storage.missing`,
 * `storage.busy`, `storage.exists`, those of servers and files that begin with `source.`, `option.wrong_type`, `cancelled`.
 */
export interface ModelStore {
  /** Everything stored, whole or not, by name. */
  list(): Promise<StoredModel[]>;
  /** Fetches a file; goes on where an earlier attempt stopped. At once when it is already there. */
  download(url: string | URL, options?: DownloadOptions): Promise<StoredModel>;
  /** Fetches several files (the parts of a split model), one after another, each stored under its own name. */
  download(urls: readonly (string | URL)[], options?: DownloadOptions): Promise<StoredModel[]>;
  /** Stores a file from the user's disk. */
  import(blob: Blob, options?: ImportOptions): Promise<StoredModel>;
  /**
   * Opens a complete file for reading. It cannot be deleted, in any tab, until the source is closed. What is read is compared
   * with what was stored; a read throws `storage.corrupt` when it differs.
   */
  source(name: string, options?: SourceOptions): Promise<ByteSource>;
  /** Reads the whole file and compares it with what was stored; throws `storage.corrupt` when it differs. */
  verify(name: string, options?: VerifyOptions): Promise<Verification>;
  /** A complete file as a `File`, for saving it elsewhere. */
  export(name: string): Promise<File>;
  /** Removes a file, or what is there of it. Throws `storage.busy` while it is being read or written. */
  delete(name: string): Promise<void>;
  estimate(): Promise<StoreSpace>;
  /** Ends what the store itself started. Sources stay open. */
  close(): void;
}
