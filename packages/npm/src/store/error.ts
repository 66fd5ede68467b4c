// Errors of the store. Codes are stable; details carry the numbers of the message for programs that
// want to act on them, and both survive the trip out of a worker (structured clone drops classes).

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
  | "option.wrong_type"
  | "internal"
  | "cancelled";

/** Bytes `offset` up to, but without, `offset + length`. */
export interface ByteRange { offset: number; length: number }

export interface StoreErrorDetails extends ErrorDetails {
  /** Name of the model file concerned. */
  file?: string;
  /** `storage.quota`: bytes still to be written. */
  needed?: number;
  /** `storage.quota`: bytes the browser still grants, where it says. */
  free?: number;
  /** `storage.quota` while a file is replaced: bytes of the one that is kept until the other is whole. */
  kept?: number;
  /** `storage.corrupt`: which bytes differ from what was stored. */
  damaged?: ByteRange[];
  /** `source.status`: the status that the server answered with. */
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
  return new StoreError("cancelled", `${what} was cancelled`);
}

/** No room for `needed` more bytes of a model; `kept` are those of the file that it is to replace. */
export function quota(file: string, needed: number, free: number | undefined, { kept, cause }: { kept?: number; cause?: unknown } = {}): StoreError {
  const grants = free === undefined ? "the browser grants no more" : `the browser grants ${bytesText(free)} (${free} bytes)`;
  const beside = kept === undefined ? "" : `; the stored file, which it is to replace, has ${bytesText(kept)} and is kept until then: delete it first`;
  return new StoreError(
    "storage.quota",
    `\`${file}\` needs ${bytesText(needed)} (${needed} bytes) more; ${grants}${beside}`,
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
