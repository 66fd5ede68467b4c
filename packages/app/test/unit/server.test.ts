import { effect } from "@preact/signals";
import type { EngineInfo } from "rullama";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { fullReport, shortReport, type Measured } from "../../src/device/report";
import { Reporter, reportErrors } from "../../src/model/reports";
import { LOG_BYTES, Server } from "../../src/model/server";
import { explain } from "../../src/text/errors";

const json = (value: unknown, status = 200) => new Response(JSON.stringify(value), { status, headers: { "content-type": "application/json" } });

beforeEach(() => {
  vi.stubGlobal("document", { baseURI: "https://example.org/folder/index.html" });
  vi.stubGlobal("navigator", { userAgent: "a browser" });
});
afterEach(() => vi.unstubAllGlobals());

describe("the server that brought the page", () => {
  test("is asked beside the page, and told apart from others", async () => {
    const answers = [new Response("no", { status: 404 }), json({ models: [{ name: "a", url: "/models/a" }, { name: 1 }] })];
    const fetch = vi.fn(async () => answers.shift() as Response);
    vi.stubGlobal("fetch", fetch);
    const server = new Server();
    const seen: (number | undefined)[] = [];
    effect(() => void seen.push(server.models?.length));
    await server.refresh();
    expect([server.ours, seen]).toEqual([false, [undefined]]);
    await server.refresh();
    expect(fetch).toHaveBeenLastCalledWith("https://example.org/folder/api/models", expect.anything());
    expect(server.models).toEqual([{ name: "a", url: "https://example.org/models/a", bytes: 0 }]);
    expect(seen).toEqual([undefined, 1]);
  });

  test("asked twice, is known to those who waited for the first answer only with the second", async () => {
    const answers: ((response: Response) => void)[] = [];
    vi.stubGlobal("fetch", () => new Promise<Response>((resolve) => answers.push(resolve)));
    const server = new Server();
    const first = server.refresh();
    const second = server.refresh();
    answers[0]?.(json({ models: [] }));
    let known: boolean | undefined;
    void first.then(() => (known = server.ours));
    await new Promise((resolve) => setTimeout(resolve));
    expect(known).toBe(undefined);
    answers[1]?.(json({ models: [] }));
    await second;
    await first;
    expect(known).toBe(true);
  });

  test("counts as none if it does not answer", async () => {
    const timeout = vi.spyOn(AbortSignal, "timeout").mockImplementation(() => AbortSignal.abort());
    vi.stubGlobal("fetch", async (_: string, { signal }: RequestInit) => {
      signal?.throwIfAborted();
      return new Promise(() => {});
    });
    const server = new Server();
    await server.refresh();
    expect(server.ours).toBe(false);
    expect(timeout).toHaveBeenCalled();
    timeout.mockRestore();
  });

  test("that refuses a text is quoted", async () => {
    vi.stubGlobal("fetch", async () => json({ error: { code: "request.too_large", message: "a text has at most 16384 bytes" } }, 413));
    const error = await new Server().log("benchmark", "x").catch((thrown: unknown) => thrown);
    expect(explain(error)).toMatchObject({ title: "The server refused the report", text: "It said: a text has at most 16384 bytes." });
  });
});

describe("the report of a benchmark", () => {
  const decode = { count: 3, median: 1 / 3, mean: 1 / 3, least: 1 / 3, most: 1 / 3, deviation: 0 };
  const measured = {
    measuredAt: "2026-08-20T12:00:00Z",
    browser: "a browser",
    adapter: { name: "a processor", fallback: false, features: Array.from({ length: 200 }, (_, index) => `feature-number-${index}`), limits: { maxBufferSize: 1 } },
    model: { name: "m", conversions: Array.from({ length: 600 }, (_, index) => ({ tensor: `blk.${index}.weight`, from: "IQ2_XS", to: "Q4_0" })) } as unknown as EngineInfo,
    generated: 32,
    repeats: 3,
    points: Array.from({ length: 10 }, (_, index) => ({ depth: 512 * index, decode })),
  } satisfies Measured;

  test("is whole in a file, and fits the server's log", () => {
    expect(fullReport(measured).length).toBeGreaterThan(LOG_BYTES);
    const short = shortReport(measured, LOG_BYTES);
    expect(new TextEncoder().encode(short).length).toBeLessThan(LOG_BYTES);
    expect(JSON.parse(short)).toMatchObject({ format: "rullama-benchmark", summary: true, model: { conversions: 600 }, points: { length: 10 } });
    expect(JSON.parse(short).points[0].decode.median).toBe(0.3333);
    expect(JSON.parse(shortReport(measured, 1500)).points.length).toBeLessThan(10);
  });
});

describe("reports of errors", () => {
  const make = (wanted: boolean, ours: boolean) => {
    const log = vi.fn(async () => {});
    return { log, reporter: new Reporter({ ours, answered: Promise.resolve(), log }, () => wanted) };
  };
  const error = Object.assign(new Error("the GPU is gone"), { code: "device.lost", details: { bytes: 5, tensor: {} } });

  test("go only to a server of ours, and only if that is wanted", async () => {
    for (const [wanted, ours] of [[false, true], [true, false]] as const) {
      const { log, reporter } = make(wanted, ours);
      reporter.tell("reply", error);
      await Promise.resolve();
      await Promise.resolve();
      expect(log).not.toHaveBeenCalled();
    }
  });

  /** The app opened at an address, with settings that remember what was stored, and a question that waits for its answer. */
  const open = async (href: string, ours: boolean) => {
    const replaceState = vi.fn();
    vi.stubGlobal("location", new URL(href));
    vi.stubGlobal("history", { state: null, replaceState });
    const listeners = new Map<string, (event: unknown) => void>();
    vi.stubGlobal("addEventListener", (type: string, listener: (event: unknown) => void) => listeners.set(type, listener));
    const settings = { report: false };
    const change = vi.fn((part: object) => void Object.assign(settings, part));
    const log = vi.fn(async () => {});
    let answer: (agrees: boolean) => void = () => {};
    const ask = vi.fn(() => new Promise<boolean>((resolve) => (answer = resolve)));
    const parts = {
      server: { ours, answered: Promise.resolve(), log },
      preferences: { settings, change },
      host: { state: { kind: "empty" }, failure: undefined },
      chat: { finished: undefined },
    };
    reportErrors(parts as never, ask);
    const settle = () => new Promise((resolve) => setTimeout(resolve));
    await settle();
    const fail = async () => {
      listeners.get("error")?.({ error: new Error(`number ${log.mock.calls.length}`) });
      await settle();
    };
    return { ask, change, log, replaceState, settings, fail, reply: (agrees: boolean) => (answer(agrees), settle()) };
  };

  test("a link only asks: nothing is sent or stored before the user allows it", async () => {
    for (const agrees of [false, true]) {
      const app = await open("https://example.org/folder/?report&x=1#/models", true);
      expect(app.ask).toHaveBeenCalledTimes(1);
      expect(app.replaceState).toHaveBeenCalledWith(null, "", new URL("https://example.org/folder/?x=1#/models"));
      await app.fail();
      expect([app.settings.report, app.change.mock.calls, app.log.mock.calls]).toEqual([false, [], []]);
      await app.reply(agrees);
      // What went wrong before the answer stays untold; what goes wrong after it is told if the user agreed.
      expect([app.settings.report, app.log.mock.calls]).toEqual([agrees, []]);
      await app.fail();
      expect(app.log).toHaveBeenCalledTimes(agrees ? 1 : 0);
      app.settings.report = false;
      await app.fail();
      expect(app.log).toHaveBeenCalledTimes(agrees ? 1 : 0);
    }
  });

  test("a link asks nothing where nobody would get the reports, and no link asks nothing", async () => {
    expect((await open("https://example.org/?report", false)).ask).not.toHaveBeenCalled();
    const app = await open("https://example.org/#report", true);
    expect([app.ask.mock.calls, app.replaceState.mock.calls]).toEqual([[], []]);
  });

  test("the server's token leaves the address, with and without a question about reports", async () => {
    for (const [given, asked] of [["?token=secret&x=1", 0], ["?report&token=secret&x=1", 1]] as const) {
      const app = await open(`https://example.org/folder/${given}#/models`, true);
      expect(app.ask).toHaveBeenCalledTimes(asked);
      expect(app.replaceState.mock.calls).toEqual([[null, "", new URL("https://example.org/folder/?x=1#/models")]]);
    }
  });

  test("have the code and the facts, and are not repeated", async () => {
    const { log, reporter } = make(true, true);
    reporter.tell("load", error);
    reporter.tell("reply", error);
    reporter.tell("error", new Error("x".repeat(10_000)));
    await new Promise((resolve) => setTimeout(resolve));
    expect(log.mock.calls.length).toBe(2);
    expect(log).toHaveBeenNthCalledWith(1, "load", 'device.lost: the GPU is gone\n{"bytes":5}\na browser');
    expect(String((log.mock.calls as unknown[][])[1]?.[1]).length).toBeLessThanOrEqual(4000);
  });
});
