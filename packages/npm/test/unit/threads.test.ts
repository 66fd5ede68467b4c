// How many threads compute on the CPU, by what the page may do.

import { expect, test } from "vitest";

import { threadCount, type Scope } from "../../src/threads.js";

/** A worker of an isolated page, on a machine with four processors. */
const WORKER: Scope = { crossOriginIsolated: true, navigator: { hardwareConcurrency: 4 }, Worker: class {}, Atomics: { waitAsync: () => {} } };

test("as many threads as processors, up to eight, or as many as were asked for", () => {
  expect(threadCount(undefined, WORKER)).toBe(4);
  expect(threadCount(undefined, { ...WORKER, navigator: { hardwareConcurrency: 64 } })).toBe(8);
  expect(threadCount(undefined, { ...WORKER, navigator: {} })).toBe(1);
  expect([1, 2, 12].map((asked) => threadCount(asked, WORKER))).toEqual([1, 2, 12]);
});

test.each<[why: string, scope: Scope]>([
  ["the page is not isolated", { ...WORKER, crossOriginIsolated: false }],
  ["the browser knows nothing of isolation", { Worker: WORKER.Worker }],
  ["a page's own thread may not wait", { ...WORKER, document: {} }],
  ["a service worker starts no workers", { ...WORKER, Worker: undefined }],
  ["the browser can't wait without blocking", { ...WORKER, Atomics: {} }],
  ["the browser is Firefox", { ...WORKER, navigator: { hardwareConcurrency: 4, userAgent: "Mozilla/5.0 (X11; Linux x86_64; rv:153.0) Gecko/20100101 Firefox/153.0" } }],
])("one thread where %s", (_why, scope) => {
  expect(threadCount(undefined, scope)).toBe(1);
  expect(threadCount(4, scope)).toBe(1);
});
