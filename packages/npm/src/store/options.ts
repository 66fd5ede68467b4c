// What callers say, looked at before anything is done with it.

import { StoreError } from "./error.js";
import { isDigest } from "./record.js";
import type { DownloadOptions } from "./types.js";

/** A digest as 64 hex digits, however it was written. */
export function digestOption(text: string | undefined): { sha256?: string } {
  if (text === undefined) return {};
  const digest = String(text).toLowerCase().replace(/^sha256[:-]/, "");
  if (!isDigest(digest)) throw new StoreError("option.wrong_type", `\`sha256\` is \`${text}\`; 64 hex digits were expected`);
  return { sha256: digest };
}

/** Refuses to take what describes one file for a description of several. */
export function describesOne(addresses: readonly unknown[], { name, sha256, bytes }: DownloadOptions): void {
  if (addresses.length !== 1 && (name ?? sha256 ?? bytes) !== undefined) {
    throw new StoreError("option.wrong_type", `\`name\`, \`sha256\` and \`bytes\` describe one file; ${addresses.length} addresses were given`);
  }
}
