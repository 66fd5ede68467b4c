// Which models are held in memory for the CPU.

import { expect, test } from "vitest";

import { held } from "../../src/source/held.js";
import type { ByteSource } from "../../src/source/types.js";

/** A file of this many bytes whose bytes tell where they are, and the ranges that were read of it. */
function file(length: number): ByteSource & { ranges: [number, number][] } {
  const ranges: [number, number][] = [];
  const read = async (offset: number, count: number) => {
    ranges.push([offset, count]);
    return Uint8Array.from({ length: count }, (_, index) => (offset + index) >> 16);
  };
  return { name: "model.gguf", length, read, ranges };
}

const { signal } = new AbortController();

test("the files of a small model are read once, piece by piece", async () => {
  const files = [file((4 << 20) + 5), file(70_000)];
  const [first, second] = await held(files, signal);
  expect(files.map(({ ranges }) => ranges)).toEqual([[[0, 4 << 20], [4 << 20, 5]], [[0, 70_000]]]);
  expect([first?.name, first?.length, second?.length]).toEqual(["model.gguf", (4 << 20) + 5, 70_000]);
  expect([...((await first?.read((4 << 20) - 1, 2)) ?? [])]).toEqual([63, 64]);
  expect(files.flatMap(({ ranges }) => ranges).length).toBe(3);
});

test("a large model stays where it is", async () => {
  const files = [file(200 << 20), file(100 << 20)];
  expect(await held(files, signal)).toEqual(files);
  expect(files.flatMap(({ ranges }) => ranges)).toEqual([]);
});

test("reading can be cancelled", async () => {
  await expect(held([file(1)], AbortSignal.abort())).rejects.toMatchObject({ code: "cancelled" });
});
