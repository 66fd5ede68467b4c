// Checks of the store's arguments.

import { anyObject, callable, checkedOptions, yesOrNo, type Expected } from "../check.js";
import { StoreError } from "./error.js";
import { isDigest } from "./record.js";
import type { DownloadOptions, ImportOptions, SourceOptions, VerifyOptions } from "./types.js";

const text: Expected = { words: "a string", is: (value) => typeof value === "string" };
const size: Expected = { words: "a whole number of bytes", is: (value) => Number.isSafeInteger(value) && (value as number) >= 0 };
const work = { signal: anyObject, onProgress: callable };

const KNOWN = {
  download: { ...work, name: text, sha256: text, bytes: size, headers: anyObject, replace: yesOrNo } satisfies Record<keyof DownloadOptions, Expected>,
  import: { ...work, name: text, sha256: text, replace: yesOrNo } satisfies Record<keyof ImportOptions, Expected>,
  source: { onProgress: callable } satisfies Record<keyof SourceOptions, Expected>,
  verify: { ...work, repair: yesOrNo, headers: anyObject } satisfies Record<keyof VerifyOptions, Expected>,
  open: { folder: text },
};

/** The options of a call. Unknown ones and wrong types are errors. */
export function callOptions<T extends object>(call: keyof typeof KNOWN, options: T): T {
  return checkedOptions(options, KNOWN[call]);
}

/** A digest as 64 hex digits, with or without a prefix, in any case. */
export function digestOption(text: string | undefined): { sha256?: string } {
  if (text === undefined) return {};
  const digest = String(text).toLowerCase().replace(/^sha256[:-]/, "");
  if (!isDigest(digest)) throw new StoreError("option.wrong_type", `Option \`sha256\` is \`${text}\`. It must be 64 hex digits.`);
  return { sha256: digest };
}

/** Refuses options that describe one file in a call for several. */
export function describesOne(addresses: readonly unknown[], { name, sha256, bytes }: DownloadOptions): void {
  if (addresses.length !== 1 && (name ?? sha256 ?? bytes) !== undefined) {
    throw new StoreError("option.wrong_type", `Options \`name\`, \`sha256\` and \`bytes\` are for one file, but ${addresses.length} URLs were given.`);
  }
}
