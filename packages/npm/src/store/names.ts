// Names: what people call a model file, and what its files are called on disk.
//
// A model file `name` is three files: `KEY.file` when whole, `KEY.part` before that, and the record `KEY.json`.
// Only a whole file ever gets the first name. A file that will replace it is written beside it, under the second of two
// places and with a record of its own; it takes the other's stead when `KEY.json` names its place.

import { StoreError } from "./error.js";
import { Sha256 } from "./sha256.js";

const LONGEST = 180;
const SUFFIXES = [".file", ".part", ".json"];

/** Where bytes lie. Keys escape `~`, so no key ends like this. */
export type Place = "" | "~2";
export const PLACES: readonly Place[] = ["", "~2"];
const NEXT = "~next";

export interface FileNames { place: Place; whole: string; part: string; record: string }

/** A file-system name for any model name: letters and digits as they are, everything doubtful escaped. */
export function keyOf(name: string): string {
  if (typeof name !== "string" || name === "") throw new StoreError("option.wrong_type", "a stored model needs a name");
  const key = escaped(name).replace(/[!'()*~]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`);
  if (key.length <= LONGEST) return key;
  // Too long for some disks: the start stays for people, the digest makes it unique.
  return `${key.slice(0, LONGEST - 65)}~${new Sha256().update(new TextEncoder().encode(name)).hex()}`;
}

function escaped(name: string): string {
  try {
    return encodeURIComponent(name);
  } catch (cause) {
    throw new StoreError("option.wrong_type", "the name of a stored model has half a character in it", {}, { cause });
  }
}

/** The name a key was made from, as far as the key alone tells. */
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

/** What a file that replaces one at `place` is written to. */
export function filesBeside(key: string, place: Place = ""): FileNames {
  return { ...filesOf(key, place === "" ? "~2" : ""), record: `${key}${NEXT}.json` };
}

/** The keys that a folder's file names belong to. Other files are left alone. */
export function keysIn(files: string[]): string[] {
  const keys = new Set<string>();
  for (const file of files) {
    const suffix = SUFFIXES.find((end) => file.endsWith(end));
    const key = suffix && file.slice(0, -suffix.length).replace(/~(2|next)$/, "");
    if (key) keys.add(key);
  }
  return [...keys].sort();
}

/** The name a model gets from its address: the last piece of the path. */
export function nameOfUrl(url: string): string {
  const last = partsOf(url).pieces.pop();
  return last ? nameOfKey(last) : url;
}

/** Its name where another file has that one: with host and folders, before what all parts of a model end in. */
export function longNameOfUrl(url: string): string {
  const { host, pieces } = partsOf(url);
  const end = /(-\d{5}-of-\d{5})?(\.[^.]*)?$/;
  const from = [host, ...pieces.slice(0, -1).map(nameOfKey)].join(" ");
  return nameOfUrl(url).replace(end, (found) => ` (${from})${found}`);
}

/** Whether two addresses name one file: all but what follows its path, which may hold no more than a permission. */
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
