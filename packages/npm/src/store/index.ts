// The model store: model files downloaded, kept, checked and read in the browser.

export { ModelStore } from "./open.js";
export type { OpenStoreOptions } from "./open.js";
export type { ByteRange, StoreErrorDetails } from "./error.js";
export type { StoreSpace } from "./files.js";
export type { OnProgress, StoreProgress } from "./progress.js";
export type { DownloadOptions, ImportOptions, SourceOptions, StoredModel, Verification, VerifyOptions, WorkOptions } from "./types.js";
