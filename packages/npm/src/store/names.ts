// Names: what people call a model file, and what its files are called on disk.
//
// A model file `name` is three files: `KEY.file` when whole, `KEY.part` before that, and the record `KEY.json`.
// Only a whole file ever gets the first name.

import { Sha256 } from "./sha256.js";

const LONGEST = 180;
const SUFFIXES = [".file", ".part", ".json"];

export interface FileNames { whole: string; part: string; record: string }

/** A file-system name for any model name: letters and digits as they are, everything doubtful escaped. */
export function keyOf(name: string): string {
  if (name === "") throw new TypeError("a stored model needs a name");
  const key = encodeURIComponent(name).replace(/[!'()*~]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`);
  if (key.length <= LONGEST) return key;
  // Too long for some disks: the start stays for people, the digest makes it unique.
  return `${key.slice(0, LONGEST - 65)}~${new Sha256().update(new TextEncoder().encode(name)).hex()}`;
}

/** The name a key was made from, as far as the key alone tells. */
export function nameOfKey(key: string): string {
  try {
    return decodeURIComponent(key);
  } catch {
    return key;
  }
}

export function filesOf(key: string): FileNames {
  return { whole: `${key}.file`, part: `${key}.part`, record: `${key}.json` };
}

/** The keys that a folder's file names belong to. Other files are left alone. */
export function keysIn(files: string[]): string[] {
  const keys = new Set<string>();
  for (const file of files) {
    const suffix = SUFFIXES.find((end) => file.endsWith(end));
    if (suffix && file.length > suffix.length) keys.add(file.slice(0, -suffix.length));
  }
  return [...keys].sort();
}

/** The name a model gets from its address: the last piece of the path. */
export function nameOfUrl(url: string): string {
  let path = url;
  try {
    path = new URL(url, "http://localhost/").pathname;
  } catch {
    path = url.split(/[?#]/)[0]!;
  }
  const last = path.split("/").filter(Boolean).pop();
  return last ? nameOfKey(last) : url;
}
