// How the engine's side prepares a load: which files it inspects before a download, and what it reports of the download.

import { beforeEach, expect, test, vi } from "vitest";

import { Caller } from "../../src/caller.js";
import { RullamaError } from "../../src/errors.js";
import { line, type LoadParams } from "../../src/protocol.js";
import { Service } from "../../src/service.js";
import type { OpenOptions } from "../../src/source/open.js";
import type { ProgressEvent } from "../../src/types.js";

const fake = vi.hoisted(() => ({
  inspect: vi.fn(),
  stored: new Set<string>(),
  load: vi.fn(),
  /** How each file is stored, and those that were closed. */
  opened: [] as [string, unknown][],
  closed: [] as string[],
}));

vi.mock("../../src/runtime.js", () => ({
  onBroken: () => () => {},
  runtime: async () => ({
    Cancel: class {
      cancel() {}
      free() {}
    },
    inspect: fake.inspect,
    WebEngine: { load: fake.load },
  }),
}));

// The store gives every file another name than its URL has.
vi.mock("../../src/source/open.js", () => ({
  isStored: async (url: string) => fake.stored.has(url),
  openRemote: async (url: string) => ({ name: url, length: 4 }),
  open: async ({ url }: { url: string }, { onDownload, store }: OpenOptions) => {
    fake.opened.push([url, store]);
    const name = `stored ${url}`;
    if (!fake.stored.has(url)) {
      onDownload(name, 2, 4);
    }
    onDownload(name, 4, 4);
    return { name, length: 4, read: async (_: number, length: number) => new Uint8Array(length), close: () => fake.closed.push(url) };
  },
}));

beforeEach(() => {
  fake.stored.clear();
  fake.inspect.mockReset().mockResolvedValue("{}");
  fake.load.mockReset().mockResolvedValue({ info: () => JSON.stringify({ gpu: { name: "a GPU" } }), unload: () => {} });
  fake.opened.length = fake.closed.length = 0;
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

/** A model with a projector, on its way into the store. */
const WITH_PROJECTOR = {
  sources: [{ kind: "url", url: "model" }],
  projector: { kind: "url", url: "projector" },
  options: "{}",
  store: { name: "mine", sha256: "0", replace: true },
} satisfies LoadParams;

test("a projector is inspected, stored and loaded beside its model, under its own name", async () => {
  const [here, there] = line();
  new Service(there);
  const caller = new Caller(here);
  const events: number[] = [];
  await caller.call("load", WITH_PROJECTOR, { onEvent: (event) => events.push(event.overall) });
  expect(fake.inspect.mock.lastCall?.slice(0, 2)).toMatchObject([[{ name: "model" }], { name: "projector" }]);
  // Two files, of which each is a half of the download.
  expect(events).toEqual([0.2, 0.4, 0.6, 0.8].map((value) => expect.closeTo(value)));
  expect(fake.opened.slice(-2)).toEqual([["model", WITH_PROJECTOR.store], ["projector", { replace: true }]]);
  const [sources, projector] = fake.load.mock.lastCall as [{ length: number }[], { name: string }];
  expect([sources.length, projector.name]).toEqual([1, "stored projector"]);
  await caller.call("unload", {});
  expect(fake.closed.slice(-2)).toEqual(["model", "projector"]);
});

test("a load that fails closes both files", async () => {
  fake.load.mockRejectedValue(new RullamaError("model.unsupported", "another projector"));
  const [here, there] = line();
  new Service(there);
  const { store: _, ...params } = WITH_PROJECTOR;
  await expect(new Caller(here).call("load", params)).rejects.toMatchObject({ code: "model.unsupported" });
  expect(fake.closed).toEqual(["model", "projector"]);
});
