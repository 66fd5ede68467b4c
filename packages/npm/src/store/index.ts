// The model store: model files downloaded, kept, checked and read in the browser.

export { ModelStore, openLocalStore } from "./open.js";
export type { OpenStoreOptions } from "./open.js";
export { StoreError } from "./error.js";
export type { ByteRange, StoreErrorCode, StoreErrorDetails } from "./error.js";
export { LocalModelStore } from "./local-store.js";
export type { LocalStoreOptions } from "./local-store.js";
export { MemoryFiles } from "./memory-files.js";
export { MemoryLocks, WebLocks } from "./locks.js";
export type { StoreLocks } from "./locks.js";
export { OpfsFiles } from "./opfs-files.js";
export type { FileReading, FileWriter, StoreFiles, StoreSpace } from "./files.js";
export { serveStore } from "./protocol.js";
export type { StorePort } from "./protocol.js";
export type { OnProgress, StoreProgress } from "./progress.js";
export { Sha256, sha256 } from "./sha256.js";
export type { HashMaker, Hasher } from "./sha256.js";
export type { DownloadOptions, ImportOptions, StoredModel, Verification, VerifyOptions, WorkOptions } from "./types.js";
