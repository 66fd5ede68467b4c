// Replies to messages with images and sounds: between the page and the engine's side, with an engine that only notes what it is asked.

import { beforeEach, expect, test, vi } from "vitest";

import { Caller } from "../../src/caller.js";
import { Session } from "../../src/engine.js";
import { RullamaError } from "../../src/errors.js";
import { line, type DecodedMedium, type SentMedium } from "../../src/protocol.js";
import { Service } from "../../src/service.js";
import type { EncodeProgress, MediaInfo, Message } from "../../src/types.js";

const fake = vi.hoisted(() => ({
  calls: [] as string[],
  /** The attachments that were neither freed nor passed to a session. */
  open: 0,
  /** Encoding on this backend fails with this code. */
  failing: undefined as { kind: string; code: string } | undefined,
  /** The GPU is lost in the next reply. */
  lost: false,
  /** Encoding waits until it is cancelled. */
  waits: false,
}));

vi.mock("../../src/runtime.js", () => {
  const failure = (code: string) => Object.assign(new Error(`it failed with ${code}`), { code });

  class Cancel {
    cancelled: () => void = () => {};
    cancel() {
      this.cancelled();
    }
    free() {}
  }

  class Attachment {
    constructor(readonly name: string) {
      fake.open += 1;
    }
    free() {
      fake.open -= 1;
    }
  }

  class Session {
    #messages: Message[] = [];
    #known = new Set<string>();

    constructor(readonly kind: string) {}

    chat(messages: string, attachments: Attachment[], options: string, onEvent: (json: string) => void) {
      return this.#answer(`chats ${messages}`, attachments, options, onEvent);
    }

    send(message: string, attachments: Attachment[], options: string, onEvent: (json: string) => void) {
      this.#messages.push(JSON.parse(message) as Message);
      return this.#answer(`sends ${message}`, attachments, options, onEvent);
    }

    async #answer(what: string, attachments: Attachment[], options: string, onEvent: (json: string) => void): Promise<string> {
      const { begun = [] } = JSON.parse(options) as { begun?: number[] };
      attachments.forEach(({ name }) => this.#known.add(name));
      fake.open -= attachments.length;
      const missing = this.#messages.flatMap(({ images = [], audio = [] }) => [...images, ...audio]).filter((name) => !this.#known.has(String(name)));
      if (missing.length > 0) {
        throw failure("input.media_unknown");
      }
      fake.calls.push(`${this.kind} ${what} with ${attachments.map(({ name }) => name).join() || "nothing"}, ${begun.length} begun`);
      onEvent(JSON.stringify({ started: { seed: 7, promptTokens: 1, reusedTokens: 0, promptMs: 1 } }));
      onEvent(JSON.stringify({ text: "a", ids: [1] }));
      if (this.kind === "gpu" && fake.lost) {
        this.#messages.pop();
        throw failure("device.lost");
      }
      return JSON.stringify({ text: "a", ids: [1] });
    }

    messages() {
      return JSON.stringify(this.#messages);
    }
    restore(messages: string) {
      fake.calls.push(`${this.kind} restores ${messages}`);
      this.#messages = JSON.parse(messages) as Message[];
    }
    clear() {
      this.#messages = [];
    }
    free() {}
  }

  class Engine {
    constructor(readonly kind: string) {}

    async #encode(what: string, told: (fraction: number) => void, cancel: Cancel): Promise<Attachment> {
      fake.calls.push(`${this.kind} encodes ${what}`);
      if (fake.failing?.kind === this.kind) {
        throw failure(fake.failing.code);
      }
      if (fake.waits) {
        await new Promise((_, reject) => (cancel.cancelled = () => reject(failure("cancelled"))));
      }
      told(0.5);
      told(1);
      return new Attachment(`${this.kind}:${what}`);
    }

    encodeImage(rgba: Uint8Array, width: number, height: number, budget: number | undefined, told: (fraction: number) => void, cancel: Cancel) {
      return this.#encode(`${width}×${height}@${budget}:${rgba[0]}`, told, cancel);
    }
    encodeSound(samples: Float32Array, told: (fraction: number) => void, cancel: Cancel) {
      return this.#encode(`sound:${samples.length}`, told, cancel);
    }
    info() {
      return JSON.stringify({ name: "fake", gpu: null });
    }
    session() {
      return new Session(this.kind);
    }
    unload() {}
  }

  const runtime = async (kind: string) => ({ Cancel, WebEngine: { load: async () => new Engine(kind) } });
  return { onBroken: () => () => {}, runtime };
});

vi.mock("../../src/source/open.js", () => ({ isStored: async () => true, open: async () => ({ name: "a", length: 4, read: async (_: number, length: number) => new Uint8Array(length) }) }));

beforeEach(() => {
  fake.calls.length = 0;
  Object.assign(fake, { open: 0, failing: undefined, lost: false, waits: false });
  vi.stubGlobal("navigator", { gpu: { requestAdapter: async () => ({ info: { vendor: "apple" } }) } });
  vi.spyOn(console, "warn").mockImplementation(() => {});
});

/** A caller of a service with a loaded model. */
async function loaded(): Promise<Caller> {
  const [here, there] = line();
  new Service(there);
  const caller = new Caller(here);
  await caller.call("load", { sources: [{ kind: "url", url: "a" }], options: "{}" });
  return caller;
}

/** Keeps a medium on the page, which decodes to this. */
function keep(caller: Caller, decoded: DecodedMedium | (() => Promise<DecodedMedium>)): SentMedium {
  const decode = typeof decoded === "function" ? decoded : async () => decoded;
  const number = caller.addMedium({ source: Promise.resolve(new Blob()), decode });
  return { medium: typeof decoded === "object" && "samples" in decoded ? "audio" : "image", number };
}

const pixels = (value: number): DecodedMedium => ({ rgba: Uint8Array.of(value, 0, 0, 255), width: 1, height: 1 });
const ask = (media: Partial<Record<"images" | "audio", string[]>>) => JSON.stringify([{ role: "user", content: "?", ...media }]);

test("images and sounds are encoded one after the other, with progress, and messages name what came of them", async () => {
  const caller = await loaded();
  const media = [{ ...keep(caller, pixels(7)), budget: 70 as const }, keep(caller, { samples: new Float32Array(3) })];
  const events: EncodeProgress[] = [];
  const params = { session: 0, messages: ask({ images: ["1"], audio: ["2"] }), options: "{}", media };
  await caller.call("chat", params, { onEvent: (event) => "encoding" in event && events.push(event.encoding) });
  expect(fake.calls).toEqual([
    "gpu encodes 1×1@70:7",
    "gpu encodes sound:3",
    'gpu chats [{"role":"user","content":"?","images":["gpu:1×1@70:7"],"audio":["gpu:sound:3"]}] with gpu:1×1@70:7,gpu:sound:3, 0 begun',
  ]);
  const told = (medium: string, index: number) => [0, 0.5, 1].map((fraction) => ({ medium, index, count: 2, fraction }));
  expect(events).toEqual([...told("image", 0), ...told("audio", 1)]);
});

test("messages without them are passed on as they are", async () => {
  const caller = await loaded();
  const messages = '[ {"role": "user", "content": "hi"} ]';
  await caller.call("chat", { session: 0, messages, options: "{}" });
  expect(fake.calls).toEqual([`gpu chats ${messages} with nothing, 0 begun`]);
});

test("an image that can't be decoded ends the reply with its error, and what was encoded before is freed", async () => {
  const caller = await loaded();
  const broken = keep(caller, () => Promise.reject(new RullamaError("media.image.broken", "no", { details: { at: 1 } })));
  const params = { session: 0, messages: ask({ images: ["1", "2"] }), options: "{}", media: [keep(caller, pixels(1)), broken] };
  await expect(caller.call("chat", params)).rejects.toMatchObject({ code: "media.image.broken", details: { at: 1 } });
  expect([fake.calls.length, fake.open]).toEqual([1, 0]);
});

test("a signal ends the decoding and the encoding of an image, and the session goes on", async () => {
  const caller = await loaded();
  const controller = new AbortController();
  let aborted = false;
  const slow = () => new Promise<DecodedMedium>(() => {});
  const number = caller.addMedium({
    source: Promise.resolve(new Blob()),
    decode: (signal) => {
      signal?.addEventListener("abort", () => (aborted = true));
      setTimeout(() => controller.abort());
      return slow();
    },
  });
  const params = (media: SentMedium[]) => ({ session: 0, messages: ask({ images: media.map(({ number }) => String(number)) }), options: "{}", media });
  await expect(caller.call("chat", params([{ medium: "image", number }]), { signal: controller.signal })).rejects.toMatchObject({ code: "cancelled" });
  expect(aborted).toBe(true);
  fake.waits = true;
  const second = new AbortController();
  const reply = caller.call("chat", params([keep(caller, pixels(1))]), { signal: second.signal });
  await vi.waitFor(() => expect(fake.calls).toEqual(["gpu encodes 1×1@undefined:1"]));
  second.abort();
  await expect(reply).rejects.toMatchObject({ code: "cancelled" });
  fake.waits = false;
  await caller.call("chat", params([keep(caller, pixels(2))]));
  expect([fake.calls.length, fake.open]).toEqual([3, 0]);
});

test.each(["encoding", "the reply"])("a GPU that is lost in %s hands the reply with its images to the CPU", async (when) => {
  const caller = await loaded();
  Object.assign(fake, when === "encoding" ? { failing: { kind: "gpu", code: "device.lost" } } : { lost: true });
  let decodes = 0;
  const image = keep(caller, async () => {
    decodes += 1;
    return pixels(1);
  });
  const result = await caller.call("chat", { session: 0, messages: ask({ images: ["1"] }), options: "{}", media: [image] });
  expect(result.text).toBe("a");
  expect(decodes).toBe(2);
  expect(fake.calls.slice(-2)).toEqual([
    "cpu encodes 1×1@undefined:1",
    `cpu chats [{"role":"user","content":"?","images":["cpu:1×1@undefined:1"]}] with cpu:1×1@undefined:1, ${when === "encoding" ? 0 : 1} begun`,
  ]);
  expect(fake.open).toBe(0);
});

const ALL: MediaInfo = { image: true, audio: true, imageBudgets: [280], defaultImageBudget: 280, longestSound: 30 };

test("a session remembers its sounds: its messages have them, and the CPU gets them with the next message", async () => {
  const caller = await loaded();
  const session = new Session(caller, 1, ALL);
  const sounds = [new Float32Array(5), new Float32Array(6)];
  const question = { role: "user", content: "?", audio: [sounds[0]] } as Message;
  await session.send(question).result();
  expect(await session.messages()).toEqual([question]);
  fake.lost = true;
  fake.calls.length = 0;
  await session.send({ role: "user", content: "!", audio: [sounds[1]] } as Message).result();
  const first = '{"role":"user","content":"?","audio":["cpu:sound:5"]}';
  const second = (kind: string) => `{"role":"user","content":"!","audio":["${kind}:sound:6"]}`;
  expect(fake.calls).toEqual([
    "gpu encodes sound:6",
    `gpu sends ${second("gpu")} with gpu:sound:6, 0 begun`,
    "cpu encodes sound:5",
    "cpu encodes sound:6",
    `cpu restores [${first}]`,
    `cpu sends ${second("cpu")} with cpu:sound:5,cpu:sound:6, 1 begun`,
  ]);
  expect((await session.messages()).map(({ audio }) => audio)).toEqual([[sounds[0]], [sounds[1]]]);
  await session.clear();
  expect(await session.messages()).toEqual([]);
  expect(caller.medium(1)).toBeUndefined();
  // Once more, as if nothing had been.
  fake.calls.length = 0;
  await session.send("hi").result();
  expect(fake.calls).toEqual(['cpu sends {"role":"user","content":"hi"} with nothing, 0 begun']);
});

test("an idle session that moves to the CPU has its messages before it is asked", async () => {
  const caller = await loaded();
  const [idle, other] = [new Session(caller, 1, ALL), new Session(caller, 2, ALL)];
  const question = { role: "user", content: "?", audio: [new Float32Array(5)] } as Message;
  await idle.send(question).result();
  fake.lost = true;
  await other.send("hi").result();
  expect(await idle.messages()).toEqual([question]);
  await idle.send("and?").result();
  expect(fake.calls.slice(-3)).toEqual([
    "cpu encodes sound:5",
    'cpu restores [{"role":"user","content":"?","audio":["cpu:sound:5"]}]',
    'cpu sends {"role":"user","content":"and?"} with cpu:sound:5, 0 begun',
  ]);
});

test("what is decoded moves to the engine's side, and is not copied", async () => {
  const [here, there] = line();
  const moved: unknown[] = [];
  const caller = new Caller({ ...here, post: (message, list) => (moved.push(...(list ?? [])), here.post(message)) });
  new Service(there);
  await caller.call("load", { sources: [{ kind: "url", url: "a" }], options: "{}" });
  const decoded = pixels(3);
  await caller.call("chat", { session: 0, messages: ask({ images: ["1"] }), options: "{}", media: [keep(caller, decoded)] });
  expect(moved).toEqual([(decoded as { rgba: Uint8Array }).rgba.buffer]);
});
