// Names: of a model file for people, and of its files on disk.
//
// A model file `name` is three files: `KEY.file` when complete, `KEY.part` before that, and the record `KEY.json`.
// Only a complete file gets the first name. Its replacement is written next to it, in the second of two places and with its own record;
// it replaces the old file when `KEY.json` names its place.

import { StoreError } from "./error.js";
import { Sha256 } from "./sha256.js";

const LONGEST = 180;
const SUFFIXES = [".file", ".part", ".json"];

/** The place of the data. Keys escape `~`, so no key ends like this. */
export type Place = "" | "~2";
export const PLACES: readonly Place[] = ["", "~2"];
const NEXT = "~next";

export interface FileNames { place: Place; whole: string; part: string; record: string }

/** A file-system name for any model name: letters and digits stay, other characters are escaped. */
export function keyOf(name: string): string {
  if (typeof name !== "string" || name === "") throw new StoreError("option.wrong_type", "A stored model needs a name.");
  const key = escaped(name).replace(/[!'()*~]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`);
  if (key.length <= LONGEST) return key;
  // Too long for some file systems: the start stays readable, the digest makes the name unique.
  return `${key.slice(0, LONGEST - 65)}~${new Sha256().update(new TextEncoder().encode(name)).hex()}`;
}

function escaped(name: string): string {
  try {
    return encodeURIComponent(name);
  } catch (cause) {
    throw new StoreError("option.wrong_type", "The name of the stored model contains half of a surrogate pair.", {}, { cause });
  }
}

/** The name that a key was made from, as far as the key shows it. */
export function nameOfKey(key: string): string {
  try {
    return decodeURIComponent(key);
  } catch {
    return key;
  }
}

export function filesOf(key: string, place: Place = ""): FileNames {
  return { place, whole: `${key}${place}.file`, part: `${key}${place}.part`, record: `${key}.json` };
}

/** The files for the replacement of a file at `place`. */
export function filesBeside(key: string, place: Place = ""): FileNames {
  return { ...filesOf(key, place === "" ? "~2" : ""), record: `${key}${NEXT}.json` };
}

/** The keys of a folder's files. Files of other programs are ignored. */
export function keysIn(files: string[]): string[] {
  const keys = new Set<string>();
  for (const file of files) {
    const suffix = SUFFIXES.find((end) => file.endsWith(end));
    const key = suffix && file.slice(0, -suffix.length).replace(/~(2|next)$/, "");
    if (key) keys.add(key);
  }
  return [...keys].sort();
}

/** The name of a model from its URL: the last part of the path. */
export function nameOfUrl(url: string): string {
  const last = partsOf(url).pieces.pop();
  return last ? nameOfKey(last) : url;
}

/** The name if another file has that one: with host and folders, before the ending that all parts of a split model have. */
export function longNameOfUrl(url: string): string {
  const { host, pieces } = partsOf(url);
  const end = /(-\d{5}-of-\d{5})?(\.[^.]*)?$/;
  const from = [host, ...pieces.slice(0, -1).map(nameOfKey)].join(" ");
  return nameOfUrl(url).replace(end, (found) => ` (${from})${found}`);
}

/** Whether two URLs name the same file. Queries are ignored, because they often hold only an access token. */
export function sameFile(a: string, b: string): boolean {
  const [one, two] = [partsOf(a), partsOf(b)];
  return one.host === two.host && one.pieces.join("/") === two.pieces.join("/");
}

function partsOf(url: string): { host: string; pieces: string[] } {
  const pieces = (path: string) => path.split("/").filter(Boolean);
  try {
    const { host, pathname } = new URL(url, globalThis.location?.href ?? "http://localhost/");
    return { host, pieces: pieces(pathname) };
  } catch {
    return { host: "", pieces: pieces(url.split(/[?#]/)[0]!) };
  }
}
