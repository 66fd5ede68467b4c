// Gemma 4 in the browser: the exports of the package.

export { chooseBackend } from "./backend.js";
export { Engine, Session, type Chat } from "./engine.js";
export { examine } from "./examine.js";
export { inspect } from "./inspect.js";
export { RullamaError, type ErrorDetails, type RullamaErrorCode } from "./errors.js";
export { Reply } from "./reply.js";
export { Model, type ReadFunction, type Sampling } from "./compat.js";
export type * from "./completions.js";
export { downloadUrl, splitUrls } from "./source/addresses.js";
export type { ByteSource } from "./source/types.js";
export type * from "./types.js";
export * from "./store/index.js";
