// What happens when a GPU turns out to be of no use: at the load, or in the middle of a conversation.

import { beforeEach, expect, test, vi } from "vitest";

import { Caller } from "../../src/caller.js";
import { line } from "../../src/protocol.js";
import { Service } from "../../src/service.js";
import type { BackendInfo, Delta, EngineInfo, LoadOptions } from "../../src/types.js";

interface Failing {
  code: string;
}

const fake = vi.hoisted(() => ({
  /** What was asked of the two modules. */
  calls: [] as string[],
  /** The errors that loading on the GPU gives, one after the other. */
  loads: [] as { code: string }[],
  /** The tokens that a reply on the GPU has before it fails with this. */
  lost: undefined as { after: number; code: string } | undefined,
  /** Bytes that the model needs on the CPU. */
  needed: 0,
  cpuFails: false,
}));

/** The whole reply of the fake model; each token is its own text. */
const REPLY = [1, 2, 3, 4, 5];

vi.mock("../../src/runtime.js", () => {
  const failure = ({ code }: Failing) => Object.assign(new Error(`it failed with ${code}`), { code });

  class Session {
    #messages = "[]";

    constructor(readonly kind: string) {}

    async send(message: string, _attachments: unknown, options: string, onEvent: (json: string) => void): Promise<string> {
      const { begun = [], seed = 7 } = JSON.parse(options) as { begun?: number[]; seed?: number };
      fake.calls.push(`${this.kind} sends ${message} after ${this.#messages}, ${begun.length} begun, seed ${seed}`);
      this.#messages = JSON.stringify([...(JSON.parse(this.#messages) as unknown[]), JSON.parse(message)]);
      onEvent(JSON.stringify({ started: { seed, promptTokens: 1, reusedTokens: 0, promptMs: 1 } }));
      for (const id of REPLY.slice(begun.length)) {
        if (this.kind === "gpu" && fake.lost && id > fake.lost.after) {
          throw failure(fake.lost);
        }
        onEvent(JSON.stringify({ text: `${id}`, ids: [id], logprobs: [{ id, logprob: this.kind === "gpu" ? -1 : -2 }] }));
      }
      return JSON.stringify({ text: REPLY.join(""), ids: REPLY, logprobs: REPLY.map((id) => ({ id, logprob: id <= begun.length ? null : -2 })) });
    }

    messages() {
      return this.#messages;
    }

    restore(messages: string) {
      this.#messages = messages;
    }

    free() {}
  }

  const runtime = async (kind: string) => ({
    Cancel: class {
      cancel() {}
      free() {}
    },
    inspect: async () => JSON.stringify({ memory: { needed: fake.needed } }),
    WebEngine: {
      load: async (_sources: unknown, _projector: unknown, options: string) => {
        const { give_up: givesUp = false } = JSON.parse(options) as { give_up?: boolean };
        fake.calls.push(`${kind} loads${givesUp ? ", may give up" : ""}`);
        const error = kind === "gpu" ? fake.loads.shift() : fake.cpuFails ? { code: "internal" } : undefined;
        if (error) {
          throw failure(error);
        }
        return {
          info: () => JSON.stringify({ name: "fake", gpu: kind === "gpu" ? { name: "a GPU" } : null }),
          session: () => new Session(kind),
          unload: () => void fake.calls.push(`${kind} is unloaded`),
        };
      },
    },
  });
  return { onBroken: () => () => {}, runtime };
});

vi.mock("../../src/source/open.js", () => ({ isStored: async () => true, open: async () => ({ name: "a", length: 4, read: async (_: number, length: number) => new Uint8Array(length) }) }));

beforeEach(() => {
  fake.calls.length = 0;
  Object.assign(fake, { loads: [], lost: undefined, needed: 0, cpuFails: false });
  vi.stubGlobal("navigator", { gpu: { requestAdapter: async () => ({ info: { vendor: "apple" } }) } });
  vi.spyOn(console, "warn").mockImplementation(() => {});
});

async function load(backend?: LoadOptions["backend"]): Promise<{ caller: Caller; info: EngineInfo; moved: BackendInfo[] }> {
  const [here, there] = line();
  new Service(there);
  const caller = new Caller(here);
  const moved: BackendInfo[] = [];
  caller.onMoved = ({ backend }) => moved.push(backend);
  const params = { sources: [{ kind: "url", url: "a" } as const], options: "{}", ...(backend ? { backend } : {}) };
  return { caller, info: await caller.call("load", params, {}), moved };
}

/** Sends a message; gives the ids of the deltas and the result. */
async function send(caller: Caller, content: string) {
  const ids: number[] = [];
  let starts = 0;
  const onEvent = (event: object) => ("started" in event ? (starts += 1) : ids.push(...(event as Delta).ids));
  const message = JSON.stringify({ role: "user", content });
  const result = await caller.call("send", { session: 0, message, options: "{}" }, { onEvent });
  return { ids, starts, result };
}

test.each(["device.unreliable", "device.unavailable"])("a GPU that fails with %s is replaced by the CPU, and the reason is told", async (code) => {
  fake.loads = [{ code }];
  const { info } = await load();
  expect(info.backend).toMatchObject({ kind: "cpu", reason: expect.stringMatching(/^The GPU /) });
  expect(fake.calls).toEqual(["gpu loads, may give up", "cpu loads"]);
});

test("a GPU that is lost once during the load gets another chance, twice is enough", async () => {
  fake.loads = [{ code: "device.lost" }];
  expect((await load()).info.backend.kind).toBe("gpu");
  fake.loads = [{ code: "device.lost" }, { code: "device.lost" }];
  expect((await load()).info.backend.kind).toBe("cpu");
});

test("whoever asked for the GPU gets its error", async () => {
  fake.loads = [{ code: "device.unreliable" }];
  await expect(load("gpu")).rejects.toMatchObject({ code: "device.unreliable" });
  expect(fake.calls).toEqual(["gpu loads"]);
});

test("a model that does not fit is not moved; the CPU is mentioned if it has room", async () => {
  for (const [needed, fits] of [[1e9, true], [3e9, undefined]] as const) {
    fake.loads = [{ code: "memory.too_large" }];
    fake.needed = needed;
    const error = await load().catch((error: unknown) => error);
    expect(error).toMatchObject({ code: "memory.too_large", details: fits ? { fitsOnCpu: true } : {} });
    expect((error as Error).message.includes('`backend: "cpu"`')).toBe(fits === true);
  }
  expect(fake.calls).not.toContain("cpu loads");
});

test("a GPU that is given up in the middle of a reply hands it to the CPU, with the conversation before it", async () => {
  const { caller, info, moved } = await load();
  expect(info.gpu?.name).toBe("a GPU");
  expect((await send(caller, "one")).ids).toEqual(REPLY);
  fake.lost = { after: 3, code: "device.lost" };
  fake.calls.length = 0;
  const { ids, starts, result } = await send(caller, "two");
  expect([ids, starts, result.text]).toEqual([REPLY, 1, "12345"]);
  // What the GPU wrote keeps its probabilities.
  expect(result.logprobs?.map(({ logprob }) => logprob)).toEqual([-1, -1, -1, -2, -2]);
  const one = '[{"role":"user","content":"one"}]';
  expect(fake.calls).toEqual([
    `gpu sends {"role":"user","content":"two"} after ${one}, 0 begun, seed 7`,
    "cpu loads",
    "gpu is unloaded",
    `cpu sends {"role":"user","content":"two"} after ${one}, 3 begun, seed 7`,
  ]);
  expect(moved).toEqual([{ kind: "cpu", reason: "The GPU stopped working twice within a minute." }]);
  expect((await caller.call("info", {})).backend.kind).toBe("cpu");
  expect(console.warn).toHaveBeenCalledOnce();
});

test("other errors of a reply are told, and so is the GPU's if the CPU can't take over", async () => {
  const { caller, moved } = await load();
  fake.lost = { after: 2, code: "model.not_finite" };
  await expect(send(caller, "one")).rejects.toMatchObject({ code: "model.not_finite" });
  Object.assign(fake, { lost: { after: 2, code: "device.lost" }, cpuFails: true });
  await expect(send(caller, "two")).rejects.toMatchObject({ code: "device.lost" });
  expect(moved).toEqual([]);
});

test("a session that was idle takes its messages along", async () => {
  const { caller } = await load();
  const idle = { session: 1, message: '{"role":"user","content":"idle"}', options: "{}" };
  await caller.call("send", idle, {});
  fake.lost = { after: 0, code: "device.lost" };
  await send(caller, "one");
  fake.calls.length = 0;
  await caller.call("send", idle, {});
  expect(fake.calls).toEqual(['cpu sends {"role":"user","content":"idle"} after [{"role":"user","content":"idle"}], 0 begun, seed 7']);
});
