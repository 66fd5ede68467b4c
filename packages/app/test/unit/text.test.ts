import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { isWithin, RANGES } from "../../../npm/src/ranges";
import { facts } from "../../src/chat/message-footer";
import type { ChatMessage } from "../../src/chat/tree";
import { depths, summarise, ticks } from "../../src/device/statistics";
import { stageFacts, type Stage, type StageName } from "../../src/model/stages";
import { outdated, route } from "../../src/offline/routes";
import { correction, DEFAULTS, FIELDS, readNumber, readSettings, restoreSettings, storedSettings, type NumberField } from "../../src/state/settings";
import { KNOWN_CODES, explain } from "../../src/text/errors";
import { age, binaryBytes, bytes, count, duration, parameters, plural, timeLeft, tokensPerSecond } from "../../src/text/format";
import { Rate } from "../../src/text/rate";

describe("numbers for people", () => {
  test("sizes", () => {
    expect([0, 999, 1000, 1_500_000, 123_456_789, 6.7e9].map(bytes)).toEqual(["0 B", "999 B", "1.0 KB", "1.5 MB", "123 MB", "6.7 GB"]);
    expect(bytes(Number.NaN)).toBe("unknown size");
    expect([100, 32768, 134217728, 2 ** 31 - 4].map(binaryBytes)).toEqual(["100 B", "32 KiB", "128 MiB", "2.0 GiB"]);
  });

  test("times", () => {
    expect([2, 12, 58, 61, 600, 3700, 7300].map(timeLeft)).toEqual([
      "a few seconds left",
      "10 seconds left",
      "60 seconds left",
      "a minute left",
      "10 minutes left",
      "1 h 2 min left",
      "2 h 2 min left",
    ]);
    expect(timeLeft(Number.POSITIVE_INFINITY)).toBe("");
    expect([12, 1500, 125_000].map(duration)).toEqual(["12 ms", "1.5 s", "2 min 5 s"]);
  });

  test("speeds, counts and parameters", () => {
    expect([0, 9.87, 250.4, Number.NaN].map(tokensPerSecond)).toEqual(["–", "9.9 tokens/s", "250 tokens/s", "–"]);
    expect(count(1234567)).toBe("1,234,567");
    expect([5.1e9, 270e6, 1.5e6, 900].map(parameters)).toEqual(["5.1B", "270M", "1.5M", "900"]);
    expect([plural(1, "message"), plural(2, "message")]).toEqual(["1 message", "2 messages"]);
  });

  test("ages", () => {
    const now = new Date(2026, 7, 20, 15).getTime();
    const hour = 3600_000;
    expect([now - hour, now - 20 * hour, now - 80 * hour, now - 1000 * hour].map((time) => age(time, now))).toEqual([
      "Today",
      "Yesterday",
      "Last 7 days",
      "July 2026",
    ]);
  });
});

test("an answer tells its model and its speed; a few tokens have none", () => {
  const answer = (generatedTokens: number): ChatMessage => ({
    id: "a",
    parent: null,
    role: "assistant",
    content: "",
    createdAt: 0,
    state: "complete",
    model: "gemma4:e2b",
    speed: { promptTokens: 9, reusedTokens: 0, generatedTokens, promptMs: 120, generateMs: 500 },
  });
  expect(facts(answer(11))).toBe("gemma4:e2b · 11 tokens · 20.0 tokens/s · Time to first token 120 ms");
  expect(facts(answer(1))).toBe("gemma4:e2b · 1 token · Time to first token 120 ms");
  expect(facts({ ...answer(11), state: "stopped", cut: true, speed: undefined })).toBe("Stopped · Cut off at the limit · gemma4:e2b");
});

describe("the speed of a download", () => {
  test("is that of the last seconds", () => {
    const rate = new Rate();
    rate.add(0, 0);
    expect(rate.bytesPerSecond(0)).toBeUndefined();
    rate.add(1000, 1000);
    expect(rate.bytesPerSecond(1000)).toBe(1000);
    for (let second = 2; second <= 20; second++) {
      rate.add(1000 + (second - 1) * 5000, second * 1000);
    }
    expect(rate.bytesPerSecond(20_000)).toBe(5000);
    expect(rate.secondsLeft(1000 + 19 * 5000 + 10_000, 20_000)).toBe(2);
    rate.add(0, 21_000);
    expect(rate.bytesPerSecond(21_000)).toBeUndefined();
  });

  test("of nothing tells no time", () => {
    const rate = new Rate();
    rate.add(5, 0);
    rate.add(5, 1000);
    rate.add(5, 2000);
    expect(rate.secondsLeft(10, 2000)).toBeUndefined();
  });

  test("is not known in a halt, nor from what was before it", () => {
    const rate = new Rate();
    [0, 1, 2, 3].forEach((second) => rate.add(second * 1000, second * 1000));
    expect([rate.bytesPerSecond(5000), rate.secondsLeft(5000, 5000)]).toEqual([1000, 2]);
    expect([rate.bytesPerSecond(7000), rate.secondsLeft(5000, 7000)]).toEqual([undefined, undefined]);
    rate.add(3001, 60_000);
    expect(rate.bytesPerSecond(60_000)).toBeUndefined();
  });

  test("that comes in fits and starts tells no time", () => {
    const rate = new Rate();
    for (const [loaded, time] of [[0, 0], [1000, 100], [2000, 200], [3000, 2800]] as const) {
      rate.add(loaded, time);
    }
    expect(rate.bytesPerSecond(2800)).toBeCloseTo(1071, 0);
    expect(rate.secondsLeft(1e9, 2800)).toBeUndefined();
  });
});

describe("what is said of a stage", () => {
  /** A stage that came this far within seconds, at 1 MB/s. */
  function stageAt(name: StageName, seconds: number, total: number): Stage {
    const rate = new Rate();
    for (let second = 0; second <= seconds; second++) {
      rate.add(second * 1e6, second * 1000);
    }
    return { name, loaded: seconds * 1e6, total, rate };
  }

  test("of bytes: how many, how fast, how long still", () => {
    expect(stageFacts(stageAt("fetch", 4, 34e6), 4000)).toBe("4.0 MB of 34.0 MB · 1.0 MB/s · 30 seconds left");
    expect(stageFacts(stageAt("download", 4, 0), 4000)).toBe("4.0 MB · 1.0 MB/s");
    expect(stageFacts(stageAt("upload", 4, 4e6), 4000)).toBe("4.0 MB of 4.0 MB");
  });

  test("while kernels are made between two bytes, no time is told", () => {
    const stage = stageAt("upload", 4, 34e6);
    expect(stageFacts(stage, 34_000)).toBe("4.0 MB of 34.0 MB");
    stage.rate.add(stage.loaded, 34_000);
    expect(stageFacts(stage, 34_000)).toBe("4.0 MB of 34.0 MB");
  });

  test("of kernels nothing is told", () => {
    const rate = new Rate();
    [0, 20_000, 40_000].forEach((time, made) => rate.add(made, time));
    expect(stageFacts({ name: "compile", loaded: 1, total: 2, rate }, 20_000)).toBe("");
  });
});

/** The codes of the engine's part that reads images and sounds. */
const MEDIA_CODES = [...readFileSync(new URL("../../../../crates/media/src/error.rs", import.meta.url), "utf8").matchAll(/=> "(media\.[a-z_.]+)"/g)].map(([, code]) => code as string);

describe("what errors say", () => {
  // Every code of the package, as its sources name them.
  const CODES = [
    ...["device.unavailable", "device.lost", "device.refused", "device.unreliable", "memory.exhausted", "memory.too_large"],
    ...["model.unsupported", "model.missing_tensor", "model.wrong_shape", "model.invalid", "model.unexpected_tensor", "model.not_finite", "context.overflow", "context.too_large"],
    ...["gguf.not_gguf", "gguf.version", "gguf.truncated", "gguf.malformed", "gguf.split", "format.unknown", "format.removed"],
    ...["metadata.missing", "metadata.type", "tokenizer.vocabulary", "tokenizer.unsupported", "chat.invalid_json", "input.empty"],
    ...["option.unknown", "option.out_of_range", "sample.not_finite", "source.status", "source.connection", "source.range_ignored"],
    ...["source.changed", "source.too_slow", "source.truncated", "source.io", "source.other", "storage.quota", "storage.unavailable"],
    ...["storage.corrupt", "storage.missing", "storage.busy", "storage.exists", "source.content_range"],
    ...["source.address", "source.offline", "source.timeout", "source.cors", "context.message", "context.answer"],
    ...["engine.unloaded", "worker.failed", "internal", "cancelled", "import.invalid", "import.too_large", "export.too_large", "report.refused"],
    ...["model.no_images", "model.no_audio", "input.media_unknown", "input.media_too_large", "media.sound.too_short", "media.sound.no_decoder", "media.image.no_decoder"],
    ...["attachment.kind", "attachment.too_large", "attachment.missing"],
    ...["capture.denied", "capture.missing", "capture.busy", "capture.insecure", "capture.unavailable"],
    ...MEDIA_CODES,
  ];

  test.each(CODES)("%s has a sentence", (code) => {
    const { title, text } = explain({ code, message: "facts" });
    expect(title).not.toBe("Something went wrong");
    expect(text).toMatch(/[.?]$/);
  });

  test("of images and sounds have an entry each", () => {
    expect(MEDIA_CODES.length).toBeGreaterThan(15);
    expect(MEDIA_CODES.filter((code) => !KNOWN_CODES.includes(code))).toEqual([]);
    // One that is added later is at least told to be about an image.
    expect(explain({ code: "media.image.new", message: "m" }).title).toBe("The image can't be used");
  });

  test("details become advice", () => {
    const tight = explain({ code: "memory.too_large", message: "m", details: { largestContext: 8192 } });
    expect([tight.text.includes("8,192"), tight.step]).toEqual([true, "settings"]);
    for (const code of ["memory.too_large", "memory.exhausted"]) {
      expect(explain({ code, message: "m", details: { fitsOnCpu: true } }).text).toContain("The CPU has room for it");
      expect(explain({ code, message: "m" }).text).not.toContain("The CPU has room");
    }
    expect(explain({ code: "storage.quota", message: "m", details: { needed: 5e9, free: 2e9 } }).text).toContain("needs 5.0 GB more; the browser allows 2.0 GB");
  });

  test("what a server answered is told by its status", () => {
    const text = (status: number) => explain({ code: "source.status", message: "m", details: { status } }).text;
    expect([text(404), text(403), text(503), text(418)]).toEqual([
      expect.stringContaining("no file at that address (HTTP 404)"),
      expect.stringContaining("sign in (HTTP 403)"),
      expect.stringContaining("has a problem (HTTP 503)"),
      expect.stringContaining("418"),
    ]);
    expect([404, 500].map(text).join()).not.toContain("CORS");
    expect(explain({ code: "gguf.not_gguf", message: "m", details: { file: "notes.pdf" } })).toMatchObject({
      title: "This isn't a GGUF file",
      text: expect.stringContaining("“notes.pdf”"),
    });
  });

  test("a conversation that is too long is told in numbers", () => {
    expect(explain({ code: "context.overflow", message: "m", details: { tokens: 1700, context: 512 } }).text).toContain("1,700 tokens; the context holds 512");
    expect(explain({ code: "context.overflow", message: "m" }).text).toMatch(/^The chat has as many/);
  });

  test("unknown things are admitted, and no stack is shown", () => {
    const error = new Error("first\n    at somewhere (file.js:1:1)");
    expect(explain(error)).toEqual({ ...explain(error), code: "unknown", title: "Something went wrong", detail: "first" });
    expect(explain(undefined).code).toBe("unknown");
    expect(explain({ code: "constructor", message: "x" }).title).toBe("Something went wrong");
    expect(explain(new DOMException("x", "AbortError")).code).toBe("cancelled");
    expect(KNOWN_CODES.length).toBeGreaterThan(30);
  });
});

describe("settings", () => {
  const field = (name: string) => FIELDS.find((one) => one.name === name) as NumberField;

  test("what is typed becomes a number that fits", () => {
    expect(["0,7", "9", "-1", "x", ""].map((typed) => readNumber(field("temperature"), typed))).toEqual([0.7, 2, 0, undefined, undefined]);
    expect(["", "42", "4.6"].map((typed) => readNumber(field("seed"), typed))).toEqual([null, 42, 5]);
    // What other programs take for no limit and for any seed.
    expect([readNumber(field("maxTokens"), "0"), readNumber(field("seed"), "-1"), readNumber(field("seed"), "0")]).toEqual([null, null, 0]);
  });

  test("what does not fit is told", () => {
    expect(["0,7", "9", "x", ""].map((typed) => correction(field("temperature"), typed))).toEqual([
      undefined,
      "Must be from 0 to 2.",
      "Enter a number from 0 to 2.",
      "Enter a number from 0 to 2.",
    ]);
    expect(["", "0", "-1", "2.5"].map((typed) => correction(field("maxTokens"), typed))).toEqual([undefined, undefined, undefined, "Must be a whole number."]);
  });

  test("what was stored is not trusted", () => {
    expect(readSettings(null)).toEqual(DEFAULTS);
    expect(readSettings({ temperature: 99, topK: "x", seed: null, think: false, context: 1, other: 1 })).toEqual({
      ...DEFAULTS,
      temperature: 2,
      think: false,
      context: 256,
    });
    expect(["cpu", "gpu", "auto", "tpu", null].map((backend) => readSettings({ backend }).backend)).toEqual(["cpu", "gpu", "auto", "auto", "auto"]);
    expect([70, 1120, 71, "280", null].map((imageBudget) => readSettings({ imageBudget }).imageBudget)).toEqual([70, 1120, 280, 280, 280]);
    expect(readSettings({ temperature: null }).temperature).toBe(DEFAULTS.temperature);
  });

  test("a context that nobody chose is left to the engine", () => {
    expect(restoreSettings(null).context).toBeNull();
    // What was written when 4096 stood there unless told.
    expect(restoreSettings({ context: 4096, temperature: 0.5 })).toEqual({ ...DEFAULTS, temperature: 0.5 });
    expect(restoreSettings({ context: 8192 }).context).toBe(8192);
    const chosen = { ...DEFAULTS, context: 4096 };
    expect(restoreSettings(storedSettings(chosen))).toEqual(chosen);
    expect(restoreSettings(storedSettings(DEFAULTS))).toEqual(DEFAULTS);
  });

  test("whatever a field takes, the engine takes", () => {
    const names = { temperature: "temperature", topK: "top_k", topP: "top_p", minP: "min_p", repeatPenalty: "repeat_penalty", seed: "seed", maxTokens: "max_tokens", context: "context" } as const;
    for (const { name, least, most, whole } of FIELDS) {
      const range = RANGES[names[name]];
      expect([isWithin(range, least), isWithin(range, most), whole], name).toEqual([true, true, range.whole]);
    }
    // And what is stored or typed beyond that never reaches it.
    for (const value of [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, -1e300, 1e300]) {
      const settings = readSettings(Object.fromEntries(FIELDS.map(({ name }) => [name, value])));
      for (const { name } of FIELDS) {
        const kept = settings[name];
        expect(kept === null || isWithin(RANGES[names[name]], kept), `${name}: ${value} became ${kept}`).toBe(true);
      }
    }
  });

  test("every default fits its field", () => {
    for (const one of FIELDS) {
      const value = DEFAULTS[one.name];
      expect(readNumber(one, value === null ? "" : String(value)), one.name).toBe(value);
    }
  });
});

describe("statistics of a benchmark", () => {
  test("summaries", () => {
    expect(summarise([3, 1, 2])).toEqual({ count: 3, median: 2, mean: 2, least: 1, most: 3, deviation: 1 });
    expect(summarise([1, 2, 3, 10]).median).toBe(2.5);
    expect(summarise([5])).toMatchObject({ median: 5, deviation: 0 });
    expect(summarise([Number.NaN, 4]).count).toBe(1);
    expect(summarise([]).median).toBeNaN();
  });

  test("depths leave room for what is generated", () => {
    expect(depths(4096, 32)).toEqual([0, 512, 1024, 2048]);
    expect(depths(4096 + 33, 32)).toEqual([0, 512, 1024, 2048, 4096]);
    expect(depths(256, 16)).toEqual([0, 119, 238]);
    expect(depths(32, 16)).toEqual([0]);
  });

  test("axes have round numbers", () => {
    expect(ticks(9.3)).toEqual([0, 2, 4, 6, 8, 10]);
    expect(ticks(100)).toEqual([0, 20, 40, 60, 80, 100]);
    expect(ticks(0.34)).toEqual([0, 0.1, 0.2, 0.3, 0.4]);
    expect(ticks(0)).toEqual([0, 1]);
  });
});

describe("what the service worker answers", () => {
  const files = new Set(["index.html", "assets/a.js"]);
  const asked = (url: string, more: object = {}) =>
    route({ method: "GET", mode: "no-cors", url, range: false, ...more }, "https://example.org/app/", files);

  test("its own page and files, and nothing else", () => {
    expect(asked("https://example.org/app/", { mode: "navigate" })).toBe("page");
    expect(asked("https://example.org/app/index.html", { mode: "navigate" })).toBe("page");
    expect(asked("https://example.org/app/other", { mode: "navigate" })).toBe("network");
    expect(asked("https://example.org/app/assets/a.js")).toBe("file");
    expect(asked("https://example.org/app/assets/a.js", { method: "POST" })).toBe("network");
    expect(asked("https://example.org/app/assets/of-the-build-before.js")).toBe("file");
    expect(asked("https://example.org/app/model.gguf")).toBe("network");
    expect(asked("https://example.org/app/assets/demo-8oIxVGdu.gguf")).toBe("network");
    expect(asked("https://example.org/app/index.html", { range: true })).toBe("network");
    expect(asked("https://example.org/api/models")).toBe("network");
    expect(asked("https://example.org/app/api/models")).toBe("network");
    expect(asked("https://other.example/app/assets/a.js")).toBe("network");
  });

  test("the build before stays, and nothing older", () => {
    expect(outdated(["app-1", "other", "app-2", "app-3"], "app-", "app-3")).toEqual(["app-1"]);
    expect(outdated(["app-2", "app-3"], "app-", "app-3")).toEqual([]);
    expect(outdated(["app-3"], "app-", "app-3")).toEqual([]);
  });
});
