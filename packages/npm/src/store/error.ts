// Errors of the store. Codes stay the same between versions, and details carry the facts of the message for programs. Both are
// posted out of a worker as plain values, because structured clone drops classes.

import { RullamaError, type ErrorDetails } from "../errors.js";

export type StoreErrorCode =
  | "storage.quota"
  | "storage.unavailable"
  | "storage.corrupt"
  | "storage.missing"
  | "storage.busy"
  | "storage.exists"
  | "source.changed"
  | "source.connection"
  | "source.content_range"
  | "source.io"
  | "source.out_of_range"
  | "source.range_ignored"
  | "source.status"
  | "source.too_slow"
  | "option.unknown"
  | "option.out_of_range"
  | "option.wrong_type"
  | "gguf.not_gguf"
  | "internal"
  | "cancelled";

/** Bytes from `offset` up to, but not including, `offset + length`. */
export interface ByteRange { offset: number; length: number }

export interface StoreErrorDetails extends ErrorDetails {
  /** The name of the model file. */
  file?: string;
  /** `storage.quota`: bytes still to be written. */
  needed?: number;
  /** `storage.quota`: bytes that the browser still allows, if it says. */
  free?: number;
  /** `storage.quota` while a file is replaced: size of the old file, which is kept until the new one is complete. */
  kept?: number;
  /** `storage.corrupt`: the ranges that differ from what was stored. */
  damaged?: ByteRange[];
  /** `source.status`: the HTTP status of the response. */
  status?: number;
}

export class StoreError extends RullamaError {
  declare readonly details: StoreErrorDetails;

  constructor(code: StoreErrorCode, message: string, details: StoreErrorDetails = {}, options?: ErrorOptions) {
    super(code, message, { cause: options?.cause, details });
  }
}

export function hasCode(error: unknown, code: StoreErrorCode): boolean {
  return error instanceof RullamaError && error.code === code;
}

export function cancelled(what: string): StoreError {
  return new StoreError("cancelled", `${what} was cancelled.`);
}

/** The error for too little space: `needed` more bytes do not fit. `kept` is the size of the file that is being replaced. */
export function quota(file: string, needed: number, free: number | undefined, { kept, cause }: { kept?: number; cause?: unknown } = {}): StoreError {
  const grants = free === undefined ? "the browser allows no more" : `the browser allows ${bytesText(free)} (${free} bytes)`;
  const beside = kept === undefined ? "" : ` The file that it replaces takes ${bytesText(kept)} and is kept until the new one is complete; delete it first to make room.`;
  return new StoreError(
    "storage.quota",
    `There is not enough space: \`${file}\` needs ${bytesText(needed)} (${needed} bytes) more, and ${grants}.${beside}`,
    { file, needed, ...(free === undefined ? {} : { free }), ...(kept === undefined ? {} : { kept }) },
    { cause },
  );
}

export function bytesText(bytes: number): string {
  const units = ["bytes", "KiB", "MiB", "GiB"];
  let value = bytes;
  let unit = 0;
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024;
    unit++;
  }
  return unit === 0 ? `${value} bytes` : `${value.toFixed(1)} ${units[unit]}`;
}
