// Models that consist of several files, recognised by their names: `NAME-00001-of-00003.gguf`.

import type { StoredModel } from "rullama";
import { DEMO_NAME, isDemo } from "./demo";

const PART = /-(\d{5})-of-(\d{5})\.gguf$/;

/** The stored files of one model. */
export interface StoredGroup {
  label: string;
  files: StoredModel[];
  bytes: number;
  storedBytes: number;
  /** All parts are stored, each completely. */
  complete: boolean;
  usedAt: number;
}

/** Groups stored files by model. */
export function groupStored(stored: readonly StoredModel[]): StoredGroup[] {
  const groups = new Map<string, StoredModel[]>();
  for (const file of stored) {
    const key = file.name.replace(PART, ".gguf (in $2 parts)");
    groups.set(key, [...(groups.get(key) ?? []), file]);
  }
  return [...groups].map(([key, files]) => {
    const inOrder = files.sort((a, b) => (a.name < b.name ? -1 : 1));
    const expected = Number(PART.exec((inOrder[0] as StoredModel).name)?.[2] ?? 1);
    const sum = (part: (file: StoredModel) => number) => inOrder.reduce((total, file) => total + part(file), 0);
    return {
      label: key.replace(/\(in 0*(\d+) parts\)$/, "(in $1 parts)"),
      files: inOrder,
      bytes: sum(({ bytes }) => bytes),
      storedBytes: sum(({ storedBytes }) => storedBytes),
      complete: inOrder.length >= expected && inOrder.every(({ complete }) => complete),
      usedAt: Math.max(...inOrder.map(({ usedAt }) => usedAt)),
    };
  });
}

/** A model's display name: its file name without `.gguf`, or the app's name for its demo model. */
export function shortName(name: string): string {
  if (isDemo(name)) {
    return name === DEMO_NAME ? "Demo model" : "Demo model of another version";
  }
  return name.replace(/\.gguf$/i, "");
}
