// What goes into the engine and what comes out of it, converted.

import { describe, expect, test, vi } from "vitest";

import { Model } from "../../src/compat.js";
import { Completions, type CompletionChunk } from "../../src/completions.js";
import { RullamaError } from "../../src/errors.js";
import { messageJson, messagesJson, optionsJson, readMessages, shown } from "../../src/names.js";
import { Reply } from "../../src/reply.js";
import { downloadUrl, fileName, splitUrls } from "../../src/source/addresses.js";
import { describe as describeSource } from "../../src/source/open.js";
import { passOnFeatures } from "../../src/subgroups.js";
import type { ChatOptions, Delta, Message, ReplyResult } from "../../src/types.js";

// The wasm module need not be built for these tests.
vi.mock("../../src/runtime.js", () => ({ runtime: () => Promise.reject(new Error("no module")), onBroken: () => () => {} }));

test("options have the engine's names, and unknown ones are left to it", () => {
  const options = { maxTokens: 5, topK: 1, stop: ["a"], signal: new AbortController().signal, seed: undefined };
  expect(JSON.parse(optionsJson(options))).toEqual({ max_tokens: 5, top_k: 1, stop: ["a"] });
  expect(JSON.parse(optionsJson({ top_p: 1, other: 2 } as never))).toEqual({ top_p: 1, other: 2 });
});

/** What a call throws. */
function thrown(work: () => unknown): { code?: unknown; message?: unknown } {
  try {
    work();
  } catch (error) {
    return error as { code: unknown; message: unknown };
  }
  return {};
}

describe("numbers outside of their ranges are refused by the name that the program wrote", () => {
  test.each<[string, unknown, string]>([
    ["temperature", -1, "is -1. It must be a finite number, 0 or above."],
    ["temperature", Number.NaN, "is NaN. It must be a finite number, 0 or above."],
    ["temperature", Number.POSITIVE_INFINITY, "is Infinity. It must be a finite number, 0 or above."],
    ["temperature", 1e300, "is 1e+300. It must be a finite number, 0 or above."],
    ["topP", 2, "is 2. It must be a number from 0 to 1."],
    ["top_p", -0.1, "is -0.1. It must be a number from 0 to 1."],
    ["minP", 1.5, "is 1.5. It must be a number from 0 to 1."],
    ["typicalP", Number.NaN, "is NaN. It must be a number from 0 to 1."],
    ["repeatPenalty", 0, "is 0. It must be a finite number above 0."],
    ["frequencyPenalty", Number.NEGATIVE_INFINITY, "is -Infinity. It must be a finite number."],
    ["presencePenalty", Number.NaN, "is NaN. It must be a finite number."],
    ["repeatLastN", -2, "is -2. It must be a whole number from -1 to 2147483647."],
    ["topK", 0.5, "is 0.5. It must be a whole number from -1 to 4294967295."],
    ["maxTokens", -3, "is -3. It must be a whole number from -2 to 4294967295."],
    ["topLogprobs", 21, "is 21. It must be a whole number from 0 to 20."],
    ["seed", 2 ** 65, "is 36893488147419103000. It must be a whole number from -9223372036854775808 to 18446744073709551615."],
  ])("%s: %s", (name, value, message) => {
    const error = thrown(() => optionsJson({ [name]: value }));
    expect([error.code, error.message]).toEqual(["option.out_of_range", `Option \`${name}\` ${message}`]);
  });

  test("also within a bias, and by OpenAI's names", async () => {
    expect(thrown(() => optionsJson({ logitBias: { 7: Number.NaN } })).message).toBe("Option `logitBias[7]` is NaN. It must be a finite number.");
    expect(thrown(() => optionsJson({ logitBias: { 7: false, 8: -2.5 } }))).toEqual({});
    expect(thrown(() => optionsJson({ topP: "1" } as never))).toMatchObject({ code: "option.wrong_type", message: "Option `topP` is a string. It must be a number." });
    for (const [name, value] of Object.entries({ top_p: 2, max_completion_tokens: -5, temperature: Number.NaN, seed: 0.5 })) {
      const error = await completions().completions.create({ messages: [{ role: "user", content: "Hi" }], [name]: value }).catch((error: unknown) => error);
      expect(error).toMatchObject({ code: "option.out_of_range" });
      expect(String((error as Error).message)).toMatch(`Option \`${name}\` is ${value}. It must be `);
    }
  });

  test("also by the names of the earlier system", async () => {
    for (const maxContext of [-1, 0.5, Number.NaN, Number.POSITIVE_INFINITY]) {
      const error = await Model.loadFromOpfs(() => new Uint8Array(), 1, maxContext).catch((error: unknown) => error);
      expect(error).toMatchObject({ code: "option.out_of_range", message: `Option \`maxContext\` is ${maxContext}. It must be a whole number from 1 to 4294967295.` });
    }
  });

  test("what Ollama gives a meaning is accepted", () => {
    const options = { maxTokens: -2, repeatLastN: -1, topK: -1, seed: -1, temperature: 0, topP: 0, minP: 1 };
    expect(JSON.parse(optionsJson(options))).toMatchObject({ max_tokens: -2, repeat_last_n: -1, top_k: -1, seed: -1 });
    for (const seed of [0, -5, 7, 2 ** 53 - 1, -(2 ** 63)]) {
      expect(JSON.parse(optionsJson({ seed }))).toEqual({ seed });
    }
    // The engine takes null for an option that is left out.
    expect(JSON.parse(optionsJson({ topP: null } as never))).toEqual({ top_p: null });
  });
});

test("messages survive the way there and back", () => {
  const messages: Message[] = [
    { role: "user", content: "hi" },
    { role: "assistant", content: "", thought: "t", toolCalls: [{ function: { name: "f", arguments: { a: 1 } } }] },
    { role: "tool", content: "1", toolName: "f", toolCallId: "i" },
  ];
  expect(messagesJson(messages, shown)).toContain('"tool_calls"');
  expect(readMessages(messagesJson(messages, shown))).toEqual(messages);
  expect(messageJson("hi", shown)).toBe('{"role":"user","content":"hi"}');
  expect(() => messagesJson("hi" as never, shown)).toThrow(RullamaError);
});

test("the address of one part names all", () => {
  expect(splitUrls("https://a.b/m-00001-of-00003.gguf?x=1")).toEqual([
    "https://a.b/m-00001-of-00003.gguf?x=1",
    "https://a.b/m-00002-of-00003.gguf?x=1",
    "https://a.b/m-00003-of-00003.gguf?x=1",
  ]);
  expect(splitUrls("https://a.b/m.gguf")).toEqual(["https://a.b/m.gguf"]);
  expect(fileName("https://a.b/c/m.gguf?download=true")).toBe("m.gguf");
});

test("sources are told apart", () => {
  const readers: unknown[] = [];
  const describe = (source: never) => describeSource(source, (reader) => readers.push(reader) - 1);
  const custom = { length: 3, read: () => new Uint8Array(3) };
  expect(describe("https://a.b/m.gguf" as never)).toEqual([{ kind: "url", url: "https://a.b/m.gguf" }]);
  expect(describe(["https://a.b/1", new URL("https://a.b/2")] as never)).toHaveLength(2);
  expect(describe(new Blob(["abc"]) as never)).toMatchObject([{ kind: "blob", name: "blob" }]);
  expect(describe(new Uint8Array(3).subarray(1) as never)).toEqual([{ kind: "bytes", bytes: new Uint8Array(2) }]);
  expect(describe(new ArrayBuffer(3) as never)).toEqual([{ kind: "bytes", bytes: new Uint8Array(3) }]);
  expect(describe({ stored: "m.gguf" } as never)).toEqual([{ kind: "stored", name: "m.gguf" }]);
  expect(describe({ opfs: "a/b" } as never)).toEqual([{ kind: "opfs", path: "a/b" }]);
  expect(describe(custom as never)).toEqual([{ kind: "page", reader: 0, name: "reader", length: 3 }]);
  for (const nonsense of [1, null, {}, { length: -1, read() {} }, { length: 1 }]) {
    expect(() => describe(nonsense as never)).toThrow(RullamaError);
  }
});

test("errors keep the code of what they are made of", () => {
  const made = RullamaError.from(Object.assign(new Error("m"), { code: "memory.too_large", largestContext: 7 }));
  expect(made).toMatchObject({ name: "RullamaError", code: "memory.too_large", details: { largestContext: 7 } });
  expect(RullamaError.from("text", "source.other")).toMatchObject({ code: "source.other", message: "text" });
  expect(RullamaError.from(made)).toBe(made);
});

test("only the engine's devices get the features that wgpu leaves out", async () => {
  const asked: unknown[] = [];
  class GPUAdapter {
    constructor(readonly features: ReadonlySet<string>) {}
    async requestDevice(descriptor?: object): Promise<unknown> {
      return asked.push(descriptor);
    }
  }
  passOnFeatures({ GPUAdapter });
  passOnFeatures({ GPUAdapter });
  const adapter = new GPUAdapter(new Set(["subgroups", "shader-f16"]));
  await adapter.requestDevice();
  await adapter.requestDevice({ label: "theirs", requiredFeatures: [] });
  await adapter.requestDevice({ label: "rullama", requiredFeatures: ["shader-f16"] });
  await new GPUAdapter(new Set()).requestDevice({ label: "rullama" });
  expect(asked).toEqual([
    undefined,
    { label: "theirs", requiredFeatures: [] },
    { label: "rullama", requiredFeatures: ["shader-f16", "subgroups"] },
    { label: "rullama", requiredFeatures: [] },
  ]);
  passOnFeatures({});
});

const RESULT: ReplyResult = {
  text: "Hi",
  thought: "Hm",
  toolCalls: [{ function: { index: 0, name: "f", arguments: { a: 1 } } }],
  ids: [1, 2, 3],
  finishReason: "stop",
  seed: 7,
  usage: { promptTokens: 10, reusedTokens: 4, generatedTokens: 3 },
  timings: { promptMs: 2, generateMs: 4 },
};

/** Completions whose replies are all the same, and what they were asked. */
function completions() {
  const asked: { messages: readonly Message[]; options: ChatOptions }[] = [];
  let left = false;
  const deltas: Delta[] = [
    { text: "", thought: "Hm", ids: [1] },
    { text: "Hi", ids: [2] },
    { text: "", toolCalls: RESULT.toolCalls, ids: [3] },
  ];
  const answer = (messages: readonly Message[], options: ChatOptions) => {
    asked.push({ messages, options });
    return new Reply(async (onDelta, signal) => {
      signal.addEventListener("abort", () => (left = true));
      deltas.forEach(onDelta);
      return RESULT;
    }, options.signal);
  };
  return { completions: new Completions(answer, "model"), asked, left: () => left };
}

test("a completion has OpenAI's shape", async () => {
  const { completions: made, asked } = completions();
  const completion = await made.create({
    messages: [
      { role: "user", content: [{ type: "text", text: "a" }, { type: "text", text: "b" }] },
      { role: "assistant", content: null, tool_calls: [{ id: "c1", type: "function", function: { name: "f", arguments: "{}" } }] },
      { role: "tool", content: "1", tool_call_id: "c1" },
    ],
    max_tokens: 7,
    logprobs: true,
    reasoning_effort: "none",
    user: "ignored",
  });
  expect(asked[0]?.messages).toMatchObject([
    // The engine joins the parts.
    { role: "user", content: [{ type: "text", text: "a" }, { type: "text", text: "b" }] },
    { role: "assistant", content: "", toolCalls: [{ id: "c1" }] },
    { role: "tool", content: "1", toolCallId: "c1", toolName: "f" },
  ]);
  expect(asked[0]?.options).toEqual({ maxTokens: 7, topLogprobs: 0, think: false });
  expect(completion).toMatchObject({
    object: "chat.completion",
    model: "model",
    choices: [
      {
        index: 0,
        message: {
          role: "assistant",
          content: "Hi",
          reasoning_content: "Hm",
          tool_calls: [{ type: "function", function: { name: "f", arguments: '{"a":1}' } }],
        },
        finish_reason: "tool_calls",
      },
    ],
    usage: { prompt_tokens: 10, completion_tokens: 3, total_tokens: 13, prompt_tokens_details: { cached_tokens: 4 } },
    timings: { prompt_per_second: 3000, generate_per_second: 500 },
  });
  await expect(made.create({ messages: [], n: 2 })).rejects.toMatchObject({ code: "option.out_of_range" });
  await expect(made.create({} as never)).rejects.toMatchObject({ code: "chat.wrong_type" });
  const call = { messages: [{ role: "assistant", tool_calls: [{ id: "c1" }] }] } as never;
  await expect(made.create(call)).rejects.toMatchObject({ code: "chat.wrong_type" });
});

test.each([
  ["https://huggingface.co/org/repo/blob/main/dir/m.gguf", "https://huggingface.co/org/repo/resolve/main/dir/m.gguf"],
  ["https://huggingface.co/org/repo/blob/main/m.gguf?show_file_info=m.gguf", "https://huggingface.co/org/repo/resolve/main/m.gguf?show_file_info=m.gguf"],
  ["https://hf.co/org/repo/blob/v1/m.gguf", "https://hf.co/org/repo/resolve/v1/m.gguf"],
  ["https://huggingface.co/datasets/org/repo/blob/main/m.gguf", "https://huggingface.co/datasets/org/repo/resolve/main/m.gguf"],
  ["https://huggingface.co/org/repo/resolve/main/blob/m.gguf", "https://huggingface.co/org/repo/resolve/main/blob/m.gguf"],
  ["https://example.org/org/repo/blob/main/m.gguf", "https://example.org/org/repo/blob/main/m.gguf"],
  ["models/m.gguf", "models/m.gguf"],
])("the file of %s is %s", (given, expected) => {
  expect(downloadUrl(given)).toBe(expected);
  if (URL.canParse(given)) {
    expect(describeSource(given, () => 0)).toEqual([{ kind: "url", url: expected }]);
  }
});

test("a role that does not exist is refused, everywhere", async () => {
  const message = { role: "critic", content: "No." } as never;
  const error = { code: "option.out_of_range", message: 'There is no role "critic". A role is one of system, developer, user, assistant, tool.' };
  expect(() => messagesJson([{ role: "user", content: "Hi" }, message], shown)).toThrow(expect.objectContaining(error));
  expect(() => messageJson(message, shown)).toThrow(expect.objectContaining(error));
  for (const role of ["system", "developer", "user", "assistant", "tool"] as const) {
    expect(JSON.parse(messageJson({ role, content: "Hi" }, shown))).toEqual({ role, content: "Hi" });
  }
});

test("fields and values of a completion that are not supported are refused", async () => {
  const { completions: made, asked } = completions();
  const codes = async (extra: object) => (await made.create({ messages: [], ...extra } as never).catch((error: { code: string }) => error) as { code: string }).code;
  for (const unknown of [{ temprature: 1 }, { functions: [] }, { audio: {} }, { stream_options: { usage: true } }]) {
    expect([unknown, await codes(unknown)]).toEqual([unknown, "option.unknown"]);
  }
  for (const value of [
    { response_format: { type: "json_object" } }, { response_format: { type: "json_schema", json_schema: {} } }, { response_format: {} }, { response_format: "text" },
    { reasoning_effort: "extreme" }, { stream: "yes" }, { logprobs: 3 }, { parallel_tool_calls: false }, { tool_choice: "required" }, { n: 2 },
  ]) {
    expect([value, await codes(value)]).toEqual([value, "option.out_of_range"]);
  }
  expect(asked.length).toBe(0);
  await made.create({ messages: [], response_format: { type: "text" }, stop: null, n: 1, user: "u", metadata: {}, store: true, service_tier: "auto" } as never);
  await expect(made.create({ messages: [] }, { timeout: 1 } as never)).rejects.toMatchObject({ code: "option.unknown" });
  await expect(made.create(undefined as never)).rejects.toMatchObject({ code: "option.wrong_type" });
});

test("what would change the answer and cannot be done is refused", async () => {
  const { completions: made, asked } = completions();
  const tools = [{ function: { name: "f" } }];
  await made.create({ messages: [], tools, tool_choice: "auto", response_format: { type: "text" } });
  await made.create({ messages: [], tools, tool_choice: "none" });
  expect(asked.map(({ options }) => options.tools)).toEqual([tools, undefined]);
  for (const impossible of [{ response_format: { type: "json_object" } }, { tool_choice: "required" }]) {
    await expect(made.create({ messages: [], ...impossible })).rejects.toMatchObject({ code: "option.out_of_range" });
  }
});

test("a streamed completion comes in OpenAI's chunks, and leaving it ends the reply", async () => {
  const { completions: made, left } = completions();
  const request = { messages: [], stream: true, stream_options: { include_usage: true } } as const;
  const chunks: CompletionChunk[] = [];
  for await (const chunk of await made.create({ ...request, messages: [] })) chunks.push(chunk);
  expect(new Set(chunks.map((chunk) => chunk.id)).size).toBe(1);
  expect(chunks.map((chunk) => chunk.choices[0]?.delta)).toMatchObject([
    { role: "assistant", content: "" },
    { reasoning_content: "Hm" },
    { content: "Hi" },
    { tool_calls: [{ index: 0, function: { name: "f" } }] },
    {},
    // Usage comes alone.
    ...([undefined] as never[]),
  ]);
  expect(chunks.at(-2)?.choices[0]?.finish_reason).toBe("tool_calls");
  expect(chunks.at(-1)?.usage?.total_tokens).toBe(13);

  const early = completions();
  for await (const _ of await early.completions.create({ ...request, messages: [] })) break;
  expect(early.left()).toBe(true);
  const unread = completions();
  await (await unread.completions.create({ ...request, messages: [] }))[Symbol.asyncIterator]().return?.();
  expect(unread.left()).toBe(true);
  expect(left()).toBe(true);
});
