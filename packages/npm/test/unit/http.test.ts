// Reading from servers, good and bad. The server is a function: what a browser does besides is tested in browsers.

import { describe, expect, test, vi } from "vitest";

import { RullamaError } from "../../src/errors.js";
import { httpSource, type HttpOptions } from "../../src/source/http.js";
import { unreachable } from "../../src/source/reach.js";
import { Pace } from "../../src/source/wire.js";
import { withFakeClock } from "../store/tools.js";

const FILE = Uint8Array.from({ length: 1000 }, (_, index) => index % 251);
const URL = "https://example.org/model.gguf";

type Handler = (range: [number, number] | undefined, count: number, init: RequestInit) => Response | Promise<Response>;

/** Answers requests with `handler`, and otherwise as a good server does. */
function server(handler: Handler = good): HttpOptions & { ranges: string[] } {
  const ranges: string[] = [];
  let count = 0;
  const send = async (_url: unknown, init: RequestInit = {}) => {
    const header = new Headers(init.headers).get("range") ?? undefined;
    ranges.push(`${init.method} ${header ?? "all"}`);
    const found = header ? /^bytes=(\d+)-(\d+)$/.exec(header) : null;
    return handler(found ? [Number(found[1]), Number(found[2])] : undefined, count++, init);
  };
  return { fetch: send as typeof fetch, firstPause: 1, ranges };
}

function good(range: [number, number] | undefined): Response {
  if (!range) {
    return new Response(FILE, { headers: { "content-length": "1000" } });
  }
  const [first, last] = range;
  const headers = { "content-range": `bytes ${first}-${last}/${FILE.length}` };
  return new Response(FILE.slice(first, last + 1), { status: 206, headers });
}

/** A good server whose file becomes another one with the third answer. */
function versions(first: Record<string, string>, then: Record<string, string>): HttpOptions {
  return server((range, count) => {
    const response = good(range);
    Object.entries(count < 2 ? first : then).forEach(([name, value]) => response.headers.set(name, value));
    return response;
  });
}

async function failure(work: Promise<unknown>): Promise<RullamaError> {
  const error = await work.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  expect(error).toBeInstanceOf(RullamaError);
  return error as RullamaError;
}

describe("a good server", () => {
  test("gives any range, and only that is asked for", async () => {
    const options = server();
    const source = await httpSource(URL, options);
    expect([source.length, source.name]).toEqual([1000, URL]);
    for (const [offset, length] of [[0, 1000], [0, 1], [999, 1], [100, 300], [5, 0]] as const) {
      expect(await source.read(offset, length)).toEqual(FILE.slice(offset, offset + length));
    }
    expect(options.ranges).toEqual([
      "GET bytes=0-1",
      "GET bytes=0-999",
      "GET bytes=0-0",
      "GET bytes=999-999",
      "GET bytes=100-399",
    ]);
  });

  test("is not asked for what it does not have", async () => {
    const source = await httpSource(URL, server());
    expect((await failure(source.read(990, 11))).code).toBe("source.out_of_range");
  });

  test("may hide Content-Range from other origins, if it tells the length otherwise", async () => {
    const hiding = (header: Record<string, string>) =>
      server((range, _count, { method }) => {
        if (method === "HEAD") {
          return new Response(null, { headers: { "content-length": "1000" } });
        }
        const [first, last] = range ?? [0, 0];
        return new Response(FILE.slice(first, last + 1), { status: 206, headers: header });
      });
    for (const options of [hiding({ "x-total-size": "1000" }), hiding({})]) {
      const source = await httpSource(URL, options);
      expect(source.length).toBe(1000);
      expect(await source.read(10, 20)).toEqual(FILE.slice(10, 30));
    }
  });

  test("may send less than was asked for", async () => {
    const source = await httpSource(
      URL,
      server((range) => good(range && [range[0], Math.min(range[1], range[0] + 99)])),
    );
    expect(await source.read(0, 1000)).toEqual(FILE);
  });

  test("counts the bytes that arrive", async () => {
    let bytes = 0;
    const source = await httpSource(URL, { ...server(), onBytes: (count) => (bytes += count) });
    await source.read(0, 500);
    expect(bytes).toBe(500);
  });

  test("may have an empty file", async () => {
    const empty = () => new Response(null, { status: 416, headers: { "content-range": "bytes */0" } });
    expect((await httpSource(URL, server(empty))).length).toBe(0);
  });
});

describe("a connection that breaks", () => {
  test("is continued where it stopped", async () => {
    const options = server((range, count) => {
      if (range && count > 0 && range[1] - range[0] > 100) {
        const part = FILE.slice(range[0], range[0] + 100);
        const body = new ReadableStream({
          start: (controller) => controller.enqueue(part),
          pull: (controller) => controller.error(new TypeError("network error")),
        });
        const headers = { "content-range": `bytes ${range[0]}-${range[1]}/${FILE.length}` };
        return new Response(body, { status: 206, headers });
      }
      return good(range);
    });
    const source = await httpSource(URL, options);
    // Ten breaks are more than a read may have without progress.
    expect(await source.read(0, 1000)).toEqual(FILE);
    expect(options.ranges.at(-1)).toBe("GET bytes=900-999");
  });

  test("does not matter where nothing more is wanted of the answer", async () => {
    const options = server((range, count) => {
      const body = new ReadableStream({ start: (controller) => controller.error(new TypeError("network error")) });
      return count === 0 ? new Response(body, { status: 206, headers: { "content-range": "bytes 0-1/1000" } }) : good(range);
    });
    const source = await httpSource(URL, options);
    expect(await source.read(0, 10)).toEqual(FILE.slice(0, 10));
  });

  test.each([429, 503])("is tried again after status %i", async (status) => {
    const source = await httpSource(
      URL,
      server((range, count) => (count % 2 === 0 ? new Response(null, { status }) : good(range))),
    );
    expect(await source.read(0, 10)).toEqual(FILE.slice(0, 10));
  });

  test("is given up after five attempts, if the server had answered", async () => {
    const options = server((range, count) => (count === 0 ? good(range) : Promise.reject(new TypeError("Failed to fetch"))));
    const error = await failure((await httpSource(URL, options)).read(0, 10));
    expect([error.code, options.ranges.length]).toEqual(["source.connection", 1 + 5]);
    expect(error.message).toContain("Failed to fetch");
  });

  test("is given up after two attempts, if the server has never answered", async () => {
    const options = server(() => Promise.reject(new TypeError("Failed to fetch")));
    const error = await failure(httpSource(URL, options));
    expect([error.code, options.ranges.length]).toEqual(["source.connection", 2]);
    expect(error.message).toBe("example.org could not be reached: Failed to fetch. Check the address and the network connection.");
  });

  test("counts as broken when it is silent, and is not tried again if it has never answered", async () => {
    const silent = (after: number) =>
      server((range, count, { signal }) => {
        if (count < after) return good(range);
        return new Promise((_, reject) => signal?.addEventListener("abort", () => reject(signal.reason)));
      });
    const never = silent(0);
    const error = await failure(httpSource(URL, { ...never, silence: 5 }));
    expect([error.code, never.ranges.length]).toEqual(["source.connection", 1]);
    expect(error.message).toContain("no data arrived for 0.005 s");
    const later = silent(1);
    const source = await httpSource(URL, { ...later, silence: 5 });
    expect([(await failure(source.read(0, 10))).code, later.ranges.length]).toEqual(["source.connection", 1 + 5]);
  });
});

describe("the reason that a server cannot be reached", () => {
  const down = (() => Promise.reject(new TypeError("Failed to fetch"))) as typeof fetch;
  const up = (async () => new Response()) as typeof fetch;
  const page = { origin: "https://app.example", protocol: "https:" };

  test.each([
    ["no connection", URL, down, { location: page, navigator: { onLine: false } }, "example.org could not be reached because this device is offline."],
    ["an http address on an https page", "http://example.org/m.gguf", up, { location: page }, "the browser blocks http addresses. Use an https address."],
    ["no CORS", URL, up, { location: page }, "example.org answers, but it does not allow pages of https://app.example to read its files (CORS)."],
    ["a server that is down", URL, down, { location: page }, "example.org could not be reached: Failed to fetch. Check the address and the network connection."],
    ["the page's own server", "https://app.example/m.gguf", up, { location: page }, "app.example could not be reached: Failed to fetch."],
    ["a server on this machine", "http://localhost:1/m.gguf", down, { location: page }, "localhost:1 could not be reached: Failed to fetch."],
  ])("%s", async (_, url, send, place, expected) => {
    expect(await unreachable(url, "Failed to fetch", send, place)).toContain(expected);
  });
});

describe("a server that trickles", () => {
  /** Sends a byte every `wait` milliseconds, and breaks off after `each` bytes. */
  function trickle(each: number, wait = 1000): HttpOptions {
    const options = server((range, count) => {
      if (!range || count === 0) {
        return good(range);
      }
      let at = range[0];
      const body = new ReadableStream({
        async pull(controller) {
          if (at > range[1]) {
            return controller.close();
          }
          await new Promise((resolve) => setTimeout(resolve, wait));
          if (at - range[0] === each) {
            return controller.error(new TypeError("network error"));
          }
          controller.enqueue(FILE.slice(at, ++at));
        },
      }, { highWaterMark: 0 });
      const headers = { "content-range": `bytes ${range[0]}-${range[1]}/${FILE.length}` };
      return new Response(body, { status: 206, headers });
    });
    return { ...options, firstPause: 250 };
  }

  test.each([
    [1000, 1000],
    [5, 1000],
    [1, 1000],
    // Here only the pauses between attempts take time.
    [1, 0],
  ])("is given up, with a break after every %i bytes that take %i ms each", async (each, wait) => {
    const { result: error, seconds } = await withFakeClock(async () => {
      const source = await httpSource(URL, trickle(each, wait));
      return failure(source.read(0, 1000));
    });
    expect(error.code).toBe("source.too_slow");
    expect(error.message).toMatch(/sent \d+ bytes in 6\d seconds, and at least 65536 are required/);
    expect(seconds).toBeLessThan(66);
  });

  test("is waited for if the read is over soon", async () => {
    const { result } = await withFakeClock(async () => (await httpSource(URL, trickle(1000))).read(0, 50));
    expect(result).toEqual(FILE.slice(0, 50));
  });

  test("is not one that is fast enough, however much there is to read", async () => {
    const { result } = await withFakeClock(async () => (await httpSource(URL, { ...trickle(1000), leastBytes: 50 })).read(0, 500));
    expect(result).toEqual(FILE.slice(0, 500));
  });

  test("is not one that is read on a machine that slept", async () => {
    vi.useFakeTimers({ toFake: ["performance"] });
    try {
      const pace = new Pace(100, 60_000, 30_000);
      vi.advanceTimersByTime(3_600_000);
      expect(pace.add(1)).toBeUndefined();
      vi.advanceTimersByTime(60_000);
      expect(pace.add(1)).toBe("it sent 2 bytes in 60 seconds, and at least 100 are required");
    } finally {
      vi.useRealTimers();
    }
  });
});

describe("what trying again does not mend", () => {
  test("a file that is too large for a server without ranges", async () => {
    const whole = server(() => good(undefined));
    expect((await failure(httpSource(URL, { ...whole, largestWhole: 999 }))).code).toBe("source.range_ignored");
    const source = await httpSource(URL, { ...whole, largestWhole: 1000 });
    expect(await source.read(990, 10)).toEqual(FILE.slice(990));
    // Nothing more is asked of it.
    expect(whole.ranges.length).toBe(2);
  });

  test("a large file of unknown length from a server without ranges", async () => {
    const options = server(() => new Response(FILE));
    expect((await failure(httpSource(URL, { ...options, largestWhole: 999 }))).code).toBe("source.range_ignored");
    expect((await httpSource(URL, options)).length).toBe(1000);
  });

  test.each([401, 404])("status %i", async (status) => {
    const options = server(() => new Response(null, { status }));
    const { code, details } = await failure(httpSource(URL, options));
    expect([code, details.status, options.ranges.length]).toEqual(["source.status", status, 1]);
  });

  test("another range than the one asked for", async () => {
    const source = await httpSource(
      URL,
      server((range, count) => good(range && count > 0 ? [range[0] + 1, range[1]] : range)),
    );
    expect((await failure(source.read(0, 10))).code).toBe("source.content_range");
  });

  test("more bytes than were asked for", async () => {
    const source = await httpSource(
      URL,
      server((range) => {
        const [first, last] = range ?? [0, 0];
        const headers = { "content-range": `bytes ${first}-${last}/${FILE.length}` };
        return new Response(FILE.slice(first, last + 2), { status: 206, headers });
      }),
    );
    expect((await failure(source.read(0, 10))).code).toBe("source.content_range");
  });

  test("a file that changed", async () => {
    const source = await httpSource(
      URL,
      server((range, count) => {
        const [first, last] = range ?? [0, 0];
        const headers = { "content-range": `bytes ${first}-${last}/${count === 0 ? 1000 : 1001}` };
        return new Response(FILE.slice(first, last + 1), { status: 206, headers });
      }),
    );
    expect((await failure(source.read(0, 10))).code).toBe("source.changed");
  });

  test.each([
    ["ETag", { etag: '"1"' }, { etag: '"2"' }],
    // As our own server answers for a file that it was given by its path.
    ["weak ETag", { etag: 'W/"1"' }, { etag: 'W/"2"' }],
    ["date", { "last-modified": "Mon, 01 Jan 2024 00:00:00 GMT" }, { "last-modified": "Tue, 02 Jan 2024 00:00:00 GMT" }],
  ])("a file of the same length with another %s", async (_, first, then) => {
    const source = await httpSource(URL, versions(first, then));
    expect(await source.read(0, 10)).toEqual(FILE.slice(0, 10));
    expect((await failure(source.read(0, 10))).code).toBe("source.changed");
  });

  test.each([
    ["a weak tag beside a date that stays", { etag: 'W/"1"', "last-modified": "a" }, { etag: 'W/"2"', "last-modified": "a" }],
    ["a weak tag in the place of a strong one", { etag: '"1"' }, { etag: 'W/"1"' }],
    ["a date beside a tag that stays", { etag: '"1"', "last-modified": "a" }, { etag: '"1"', "last-modified": "b" }],
    ["no tag any more", { etag: '"1"' }, {}],
  ])("but %s says nothing", async (_, first, then) => {
    const source = await httpSource(URL, versions(first, then));
    for (let i = 0; i < 2; i++) {
      expect(await source.read(0, 10)).toEqual(FILE.slice(0, 10));
    }
  });

  test("nobody wanting it any more", async () => {
    const controller = new AbortController();
    const options = server((range, _count, { signal }) => {
      controller.abort();
      return signal?.aborted ? Promise.reject(signal.reason) : good(range);
    });
    const error = await failure(httpSource(URL, { ...options, signal: controller.signal }));
    expect([error.code, error.name]).toEqual(["cancelled", "AbortError"]);
    expect(options.ranges.length).toBe(1);
  });
});
