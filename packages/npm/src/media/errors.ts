// Errors that images and sounds have in common.

import { RullamaError } from "../errors.js";

/** The error of a file that was changed or deleted after it was chosen. */
export function unreadable(file: Blob, cause: unknown): RullamaError {
  const name = "name" in file ? `\`${String(file.name)}\`` : "A file";
  return new RullamaError("source.io", `${name} cannot be read: ${reasonOf(cause)}. It may have been changed or moved; choose it again.`, { cause });
}

/** What the browser says about an error, without a full stop. */
export function reasonOf(cause: unknown): string {
  return (cause instanceof Error ? cause.message : String(cause)).replace(/\.$/, "");
}
