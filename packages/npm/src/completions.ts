// OpenAI's chat completions API: `engine.chat.completions.create({ messages, stream })`.

import { anyObject, callable, checkedOptions } from "./check.js";
import { RullamaError } from "./errors.js";
import { IMAGE_BUDGETS } from "./media/options.js";
import { checkNumber, RANGES } from "./ranges.js";
import type { Reply } from "./reply.js";
import type { ChatOptions, ChosenLogprob, ContentPart, EncodeProgress, ImageBudget, Message, ReplyResult, Role, Tool, ToolCall } from "./types.js";

export interface CompletionMessage {
  role: Role;
  content?: string | ContentPart[] | null;
  name?: string;
  reasoning_content?: string;
  tool_calls?: CompletionToolCall[];
  tool_call_id?: string;
}

/** What a request has besides OpenAI's fields. */
export interface CompletionOptions {
  /** Cancels the reply. */
  signal?: AbortSignal;
  /** As in {@link ChatOptions.onEncode}. */
  onEncode?: (progress: EncodeProgress) => void;
}

export interface CompletionToolCall {
  id: string;
  type: "function";
  function: { name: string; arguments: string };
}

/**
 * A request. A field that is not listed here, or a value that is not supported, is an error. OpenAI's fields that only label a request
 * are accepted and have no effect.
 */
export interface CompletionRequest {
  messages: CompletionMessage[];
  /** Appears in the response. Default: the name of the loaded model. */
  model?: string;
  stream?: boolean;
  stream_options?: { include_usage?: boolean; include_obfuscation?: boolean };
  max_tokens?: number;
  max_completion_tokens?: number;
  temperature?: number;
  top_p?: number;
  top_k?: number;
  stop?: string | string[];
  seed?: number;
  /** Only 1. */
  n?: number;
  tools?: Tool[];
  tool_choice?: "auto" | "none";
  /** Only `true`, the default: the model decides how many tools it calls. */
  parallel_tool_calls?: boolean;
  /** Only text. */
  response_format?: { type: "text" };
  logprobs?: boolean;
  top_logprobs?: number;
  logit_bias?: Record<string, number>;
  frequency_penalty?: number;
  presence_penalty?: number;
  /** `none` turns reasoning off; every other level turns it on. */
  reasoning_effort?: "none" | "minimal" | "low" | "medium" | "high";
  /** How many tokens each image may take: {@link ChatOptions.imageBudget}. Not part of OpenAI's API. */
  image_budget?: ImageBudget;
  user?: string;
  metadata?: Record<string, string>;
  store?: boolean;
  service_tier?: string;
  safety_identifier?: string;
  prompt_cache_key?: string;
  prompt_cache_retention?: string;
}

export interface CompletionUsage {
  prompt_tokens: number;
  completion_tokens: number;
  total_tokens: number;
  prompt_tokens_details: { cached_tokens: number };
}

/** How long the reply took. Not part of OpenAI's API. */
export interface CompletionTimings {
  prompt_ms: number;
  generate_ms: number;
  prompt_per_second: number;
  generate_per_second: number;
}

export type CompletionFinish = "stop" | "length" | "tool_calls" | null;

export interface CompletionLogprobs {
  content: (CompletionLogprob & { top_logprobs: CompletionLogprob[] })[];
}

interface CompletionLogprob {
  token: string;
  logprob: number;
  bytes: number[];
}

export interface Completion {
  id: string;
  object: "chat.completion";
  created: number;
  model: string;
  choices: {
    index: 0;
    message: {
      role: "assistant";
      content: string | null;
      reasoning_content?: string;
      tool_calls?: CompletionToolCall[];
    };
    logprobs: CompletionLogprobs | null;
    finish_reason: CompletionFinish;
  }[];
  usage: CompletionUsage;
  timings: CompletionTimings;
}

export interface CompletionChunk {
  id: string;
  object: "chat.completion.chunk";
  created: number;
  model: string;
  choices: {
    index: 0;
    delta: {
      role?: "assistant";
      content?: string;
      reasoning_content?: string;
      tool_calls?: (CompletionToolCall & { index: number })[];
    };
    logprobs: CompletionLogprobs | null;
    finish_reason: CompletionFinish;
  }[];
  usage?: CompletionUsage | null;
  timings?: CompletionTimings;
}

type Answer = (messages: readonly Message[], options: ChatOptions) => Reply;

export class Completions {
  readonly #answer: Answer;
  readonly #model: string;

  /** @internal */
  constructor(answer: Answer, model: string) {
    this.#answer = answer;
    this.#model = model;
  }

  /** Answers a conversation: as a whole, or with `stream: true` in chunks. Leaving the loop over the chunks stops the model. */
  create(
    request: CompletionRequest & { stream: true },
    options?: CompletionOptions,
  ): Promise<AsyncIterable<CompletionChunk>>;
  create(request: CompletionRequest & { stream?: false }, options?: CompletionOptions): Promise<Completion>;
  create(
    request: CompletionRequest,
    options?: CompletionOptions,
  ): Promise<Completion | AsyncIterable<CompletionChunk>>;
  async create(
    request: CompletionRequest,
    options: CompletionOptions = {},
  ): Promise<Completion | AsyncIterable<CompletionChunk>> {
    checkRequest(request);
    const { signal, onEncode } = checkedOptions(options, { signal: anyObject, onEncode: callable });
    const reply = this.#answer(readMessages(request.messages), { ...readOptions(request, signal), ...(onEncode ? { onEncode } : {}) });
    const head = {
      id: `chatcmpl-${crypto.randomUUID()}`,
      created: Math.floor(Date.now() / 1000),
      model: request.model ?? this.#model,
    };
    return request.stream
      ? cancelling(reply, chunks(reply, head, request.stream_options?.include_usage === true))
      : whole(await reply.result(), head);
  }
}

interface Head {
  id: string;
  created: number;
  model: string;
}

function whole(result: ReplyResult, head: Head): Completion {
  const { text, thought, toolCalls, logprobs } = result;
  return {
    ...head,
    object: "chat.completion",
    choices: [
      {
        index: 0,
        message: {
          role: "assistant",
          content: text === "" && toolCalls.length > 0 ? null : text,
          ...(thought === "" ? {} : { reasoning_content: thought }),
          ...(toolCalls.length > 0 ? { tool_calls: toolCalls.map((call, index) => writeCall(call, head.id, index)) } : {}),
        },
        logprobs: writeLogprobs(logprobs),
        finish_reason: finish(result),
      },
    ],
    usage: usage(result),
    timings: timings(result),
  };
}

async function* chunks(reply: Reply, head: Head, includeUsage: boolean): AsyncGenerator<CompletionChunk> {
  type Choice = CompletionChunk["choices"][number];
  const chunk = (choice: Partial<Choice>): CompletionChunk => ({
    ...head,
    object: "chat.completion.chunk",
    choices: [{ index: 0, delta: {}, logprobs: null, finish_reason: null, ...choice }],
    ...(includeUsage ? { usage: null } : {}),
  });
  try {
    yield chunk({ delta: { role: "assistant", content: "" } });
    let calls = 0;
    for await (const { text, thought, toolCalls, logprobs } of reply) {
      const delta: Choice["delta"] = {};
      if (text !== "") {
        delta.content = text;
      }
      if (thought) {
        delta.reasoning_content = thought;
      }
      if (toolCalls) {
        delta.tool_calls = toolCalls.map((call) => ({ ...writeCall(call, head.id, calls), index: calls++ }));
      }
      yield chunk({ delta, logprobs: writeLogprobs(logprobs) });
    }
    const result = await reply.result();
    yield { ...chunk({ finish_reason: finish(result) }), timings: timings(result) };
    if (includeUsage) {
      yield { ...head, object: "chat.completion.chunk", choices: [], usage: usage(result), timings: timings(result) };
    }
  } finally {
    // The loop may have been left early. After the end this does nothing.
    reply.cancel();
  }
}

/** A stream that cancels its reply even if it is closed before the first chunk is read, which a generator alone does not notice. */
function cancelling<T>(reply: Reply, stream: AsyncGenerator<T>): AsyncIterableIterator<T> {
  return {
    next: () => stream.next(),
    return: () => {
      reply.cancel();
      return stream.return(undefined);
    },
    [Symbol.asyncIterator]() {
      return this;
    },
  };
}

function readMessages(messages: CompletionMessage[]): Message[] {
  if (!Array.isArray(messages)) {
    throw new RullamaError("chat.wrong_type", "`messages` must be a list of messages.");
  }
  const names = new Map<string, string>();
  return messages.map((message) => {
    const { role, content, name, reasoning_content: thought, tool_calls: calls, tool_call_id: id } = message;
    if (calls !== undefined && calls !== null && !(Array.isArray(calls) && calls.every((call) => call?.function?.name))) {
      throw new RullamaError("chat.wrong_type", "`tool_calls` must be a list of calls, each with a `function` that has a `name`.");
    }
    for (const call of calls ?? []) {
      names.set(call.id, call.function.name);
    }
    const toolName = role === "tool" ? (name ?? names.get(id ?? "")) : undefined;
    return {
      role,
      content: content ?? "",
      ...(thought ? { thought } : {}),
      // The engine also accepts arguments as a JSON string.
      ...(calls ? { toolCalls: calls as unknown as ToolCall[] } : {}),
      ...(id ? { toolCallId: id } : {}),
      ...(toolName ? { toolName } : {}),
    };
  });
}

/** The fields of a request: true for those that are used, false for those that only label a request. */
const FIELDS: Record<keyof CompletionRequest, boolean> = {
  messages: true,
  model: true,
  stream: true,
  stream_options: true,
  max_tokens: true,
  max_completion_tokens: true,
  temperature: true,
  top_p: true,
  top_k: true,
  stop: true,
  seed: true,
  n: true,
  tools: true,
  tool_choice: true,
  parallel_tool_calls: true,
  response_format: true,
  logprobs: true,
  top_logprobs: true,
  logit_bias: true,
  frequency_penalty: true,
  presence_penalty: true,
  reasoning_effort: true,
  image_budget: true,
  user: false,
  metadata: false,
  store: false,
  service_tier: false,
  safety_identifier: false,
  prompt_cache_key: false,
  prompt_cache_retention: false,
};

/** The supported values of fields that are not numbers. */
const VALUES: Partial<Record<keyof CompletionRequest, readonly unknown[]>> = {
  stream: [true, false],
  n: [1],
  tool_choice: ["auto", "none"],
  parallel_tool_calls: [true],
  logprobs: [true, false],
  reasoning_effort: ["none", "minimal", "low", "medium", "high"],
  image_budget: IMAGE_BUDGETS,
};

/** Refuses unknown fields, and values that would have to change the answer but cannot. Null stands for a field that is left out. */
function checkRequest(request: CompletionRequest): void {
  if (typeof request !== "object" || request === null) {
    throw new RullamaError("option.wrong_type", "The request must be an object with `messages`.");
  }
  for (const [name, value] of Object.entries(request)) {
    if (!Object.hasOwn(FIELDS, name)) {
      throw new RullamaError("option.unknown", `Option \`${name}\` is not supported.`);
    }
    const supported = VALUES[name as keyof CompletionRequest];
    if (supported && value !== undefined && value !== null && !supported.includes(value)) {
      throw unsupported(name, value, supported);
    }
  }
  const { response_format: format, stream_options: stream } = request;
  if (format && format.type !== "text") {
    throw unsupported("response_format.type", format.type, ["text"]);
  }
  for (const name of Object.keys(stream ?? {})) {
    if (!["include_usage", "include_obfuscation"].includes(name)) {
      throw new RullamaError("option.unknown", `Option \`stream_options.${name}\` is not supported.`);
    }
  }
}

function unsupported(name: string, value: unknown, supported: readonly unknown[]): RullamaError {
  const list = supported.map((one) => JSON.stringify(one)).join(", ");
  const found = JSON.stringify(value) ?? String(value);
  return new RullamaError("option.out_of_range", `Option \`${name}\` is ${found}. Supported: ${list}.`);
}

/** The numeric fields of a request, with their ranges. */
const NUMBERS = {
  max_completion_tokens: RANGES.max_tokens,
  max_tokens: RANGES.max_tokens,
  temperature: RANGES.temperature,
  top_p: RANGES.top_p,
  top_k: RANGES.top_k,
  seed: RANGES.seed,
  frequency_penalty: RANGES.frequency_penalty,
  presence_penalty: RANGES.presence_penalty,
  top_logprobs: RANGES.top_logprobs,
} as const;

/** Refuses numbers out of range, by the names that they have in the request. */
function checkNumbers(request: CompletionRequest): void {
  for (const [name, range] of Object.entries(NUMBERS)) {
    checkNumber(name, range, request[name as keyof typeof NUMBERS]);
  }
}

function readOptions(request: CompletionRequest, signal?: AbortSignal): ChatOptions {
  checkNumbers(request);
  const known: Record<string, unknown> = {
    maxTokens: request.max_completion_tokens ?? request.max_tokens,
    temperature: request.temperature,
    topP: request.top_p,
    topK: request.top_k,
    stop: request.stop,
    seed: request.seed,
    tools: request.tool_choice === "none" ? undefined : request.tools,
    logitBias: request.logit_bias,
    frequencyPenalty: request.frequency_penalty,
    presencePenalty: request.presence_penalty,
    topLogprobs: request.logprobs ? (request.top_logprobs ?? 0) : undefined,
    think: request.reasoning_effort ? request.reasoning_effort !== "none" : undefined,
    imageBudget: request.image_budget,
    signal,
  };
  const given = Object.entries(known).filter(([, value]) => value !== undefined && value !== null);
  return Object.fromEntries(given) as ChatOptions;
}

function writeCall({ id, function: { name, arguments: values } }: ToolCall, reply: string, index: number): CompletionToolCall {
  return {
    id: id ?? `call_${reply.slice(-12)}_${index}`,
    type: "function",
    function: { name, arguments: JSON.stringify(values) },
  };
}

function writeLogprobs(logprobs: ChosenLogprob[] | undefined): CompletionLogprobs | null {
  if (!logprobs) {
    return null;
  }
  const one = ({ token, logprob, bytes }: CompletionLogprob) => ({ token, logprob, bytes });
  return { content: logprobs.map((chosen) => ({ ...one(chosen), top_logprobs: chosen.top.map(one) })) };
}

function finish({ finishReason, toolCalls }: ReplyResult): CompletionFinish {
  if (finishReason === "stop" && toolCalls.length > 0) {
    return "tool_calls";
  }
  // OpenAI's API has no reason for a cancelled reply.
  return finishReason === "cancelled" ? null : finishReason;
}

function usage({ usage: { promptTokens, reusedTokens, generatedTokens } }: ReplyResult): CompletionUsage {
  return {
    prompt_tokens: promptTokens,
    completion_tokens: generatedTokens,
    total_tokens: promptTokens + generatedTokens,
    prompt_tokens_details: { cached_tokens: reusedTokens },
  };
}

function timings({ usage, timings: { promptMs, generateMs } }: ReplyResult): CompletionTimings {
  const rate = (tokens: number, milliseconds: number) => (milliseconds > 0 ? (1000 * tokens) / milliseconds : 0);
  return {
    prompt_ms: promptMs,
    generate_ms: generateMs,
    prompt_per_second: rate(usage.promptTokens - usage.reusedTokens, promptMs),
    // The first token belongs to the prompt's time.
    generate_per_second: rate(Math.max(usage.generatedTokens - 1, 0), generateMs),
  };
}
