// The progress of a whole load.

import { describe, expect, test } from "vitest";

import { LoadProgress } from "../../src/progress.js";
import type { ProgressEvent } from "../../src/types.js";

/** Runs a load whose stages are given, on a clock that advances enough for every event. */
function load(downloads: string[], stages: [ProgressEvent["status"], string, number, number][]): ProgressEvent[] {
  const events: ProgressEvent[] = [];
  let time = 0;
  const progress = new LoadProgress((event) => events.push(event), () => (time += 100));
  progress.expectDownloads(downloads);
  stages.forEach((stage) => progress.at(...stage));
  return events;
}

const NAME = "model.gguf";

describe("overall", () => {
  test.each([
    ["a model from a file", [], [["compile", NAME, 0, 2], ["compile", NAME, 1, 2], ["upload", NAME, 5, 10], ["upload", NAME, 10, 10], ["compile", NAME, 2, 2]]],
    [
      "a model from a server, which is read while it is uploaded",
      [],
      [["download", NAME, 3, 100], ["compile", NAME, 0, 2], ["upload", NAME, 0, 10], ["download", NAME, 50, 100], ["upload", NAME, 10, 10], ["compile", NAME, 2, 2]],
    ],
    [
      "a split model that is downloaded into the store first",
      ["a", "b"],
      [
        ["download", "a", 50, 100], ["download", "a", 100, 100], ["download", "b", 0, 50], ["download", "b", 50, 50],
        ["compile", "a", 0, 2], ["compile", "a", 1, 2], ["verify", "a", 1, 100], ["upload", "a", 10, 10], ["compile", "a", 2, 2],
      ],
    ],
    [
      "an upload that starts over, and a download of unknown size",
      [NAME],
      [["download", NAME, 10, 0], ["upload", NAME, 9, 10], ["upload", NAME, 1, 10], ["upload", NAME, 10, 10], ["compile", NAME, 2, 2]],
    ],
  ] as [string, string[], [ProgressEvent["status"], string, number, number][]][])("%s: never goes down and ends at exactly 1", (_, downloads, stages) => {
    const overall = load(downloads, stages).map((event) => event.overall);
    expect(overall.length).toBe(stages.length);
    expect(overall).toEqual([...overall].sort((a, b) => a - b));
    expect(overall.slice(0, -1).every((value) => value >= 0 && value < 1)).toBe(true);
    expect(overall.at(-1)).toBe(1);
  });

  test("a download into the store takes most of it, and its files share that", () => {
    const events = load(["a", "b"], [["download", "a", 100, 100], ["download", "b", 50, 50], ["upload", "a", 5, 10]]);
    expect(events.map((event) => event.overall)).toEqual([0.4, 0.8, 0.88]);
  });

  test("files that are in the store already do not count as downloads", () => {
    const events = load(["b", "c"], [["download", "a", 100, 100], ["download", "b", 25, 50], ["download", "b", 50, 50], ["download", "c", 50, 50]]);
    expect(events.map((event) => event.overall)).toEqual([0, 0.2, 0.4, 0.8]);
  });
});

test("events of one kind that come too soon are left out, but not the last", () => {
  const events: ProgressEvent[] = [];
  const progress = new LoadProgress((event) => events.push(event), () => 0);
  for (const loaded of [0, 1, 2, 2, 3]) progress.at("upload", NAME, loaded, 3);
  expect(events.map(({ loaded }) => loaded)).toEqual([0, 3]);
});
