// How the engine's side prepares a load: which files it inspects before a download, and what it reports of the download.

import { beforeEach, expect, test, vi } from "vitest";

import { Caller } from "../../src/caller.js";
import { RullamaError } from "../../src/errors.js";
import { line } from "../../src/protocol.js";
import { Service } from "../../src/service.js";
import type { OpenOptions } from "../../src/source/open.js";
import type { ProgressEvent } from "../../src/types.js";

const fake = vi.hoisted(() => ({
  inspect: vi.fn(),
  stored: new Set<string>(),
}));

vi.mock("../../src/runtime.js", () => ({
  onBroken: () => () => {},
  runtime: async () => ({
    Cancel: class {
      cancel() {}
      free() {}
    },
    inspect: fake.inspect,
    WebEngine: { load: async () => ({ info: () => JSON.stringify({ gpu: { name: "a GPU" } }) }) },
  }),
}));

// The store gives every file another name than its URL has.
vi.mock("../../src/source/open.js", () => ({
  isStored: async (url: string) => fake.stored.has(url),
  openRemote: async (url: string) => ({ name: url, length: 4 }),
  open: async ({ url }: { url: string }, { onDownload }: OpenOptions) => {
    const name = `stored ${url}`;
    if (!fake.stored.has(url)) {
      onDownload(name, 2, 4);
    }
    onDownload(name, 4, 4);
    return { name, length: 4, read: async (_: number, length: number) => new Uint8Array(length) };
  },
}));

beforeEach(() => {
  fake.stored.clear();
  fake.inspect.mockReset().mockResolvedValue("{}");
  vi.stubGlobal("navigator", { gpu: { requestAdapter: async () => null } });
});

/** Loads a model of these files into the store, and gives the `overall` of its events. */
async function load(...urls: string[]): Promise<number[]> {
  const [here, there] = line();
  new Service(there);
  const events: ProgressEvent[] = [];
  const sources = urls.map((url) => ({ kind: "url", url }) as const);
  await new Caller(here).call("load", { sources, options: "{}", store: {} }, { onEvent: (event) => events.push(event as ProgressEvent) });
  return events.map(({ overall }) => overall);
}

test.each(["source.range_ignored", "source.content_range"] as const)("a file whose header can't be read alone (%s) is downloaded", async (code) => {
  fake.inspect.mockRejectedValue(new RullamaError(code, "not this range"));
  expect(await load("a")).toEqual([0.4, 0.8]);
  expect(fake.inspect).toHaveBeenCalledOnce();
});

test("a model that can't run is not downloaded", async () => {
  fake.inspect.mockRejectedValue(new RullamaError("model.unsupported", "another model"));
  await expect(load("a")).rejects.toMatchObject({ code: "model.unsupported" });
});

test("parts that are stored already do not count as downloaded", async () => {
  fake.stored.add("a");
  expect(await load("a", "b", "c")).toEqual([0, 0.2, 0.4, 0.6, 0.8].map((value) => expect.closeTo(value)));
});
