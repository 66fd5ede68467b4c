// The engine in OpenAI's shape: `engine.chat.completions.create({ messages, stream })`.

import { RullamaError } from "./errors.js";
import { checkNumber, RANGES } from "./ranges.js";
import type { Reply } from "./reply.js";
import type { ChatOptions, ChosenLogprob, Message, ReplyResult, Tool, ToolCall } from "./types.js";

/** A piece of a message's content. */
export type ContentPart = { type: "text"; text: string } | { type: "image_url"; image_url: { url: string } };

export interface CompletionMessage {
  role: string;
  content?: string | ContentPart[] | null;
  name?: string;
  reasoning_content?: string;
  tool_calls?: CompletionToolCall[];
  tool_call_id?: string;
}

export interface CompletionToolCall {
  id: string;
  type: "function";
  function: { name: string; arguments: string };
}

/** A request. Fields of OpenAI's that are not named here are ignored, but for those that would change the answer. */
export interface CompletionRequest {
  messages: CompletionMessage[];
  model?: string;
  stream?: boolean;
  stream_options?: { include_usage?: boolean };
  max_tokens?: number;
  max_completion_tokens?: number;
  temperature?: number;
  top_p?: number;
  top_k?: number;
  stop?: string | string[];
  seed?: number;
  n?: number;
  tools?: Tool[];
  logprobs?: boolean;
  top_logprobs?: number;
  logit_bias?: Record<string, number>;
  frequency_penalty?: number;
  presence_penalty?: number;
  /** `none` answers without thinking. */
  reasoning_effort?: "none" | "minimal" | "low" | "medium" | "high";
  [other: string]: unknown;
}

export interface CompletionUsage {
  prompt_tokens: number;
  completion_tokens: number;
  total_tokens: number;
  prompt_tokens_details: { cached_tokens: number };
}

/** What OpenAI's shape has no place for: how long it took. */
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

  /** Answers a conversation: whole, or with `stream: true` as chunks. Leaving the loop over these ends the reply. */
  create(
    request: CompletionRequest & { stream: true },
    options?: { signal?: AbortSignal },
  ): Promise<AsyncIterable<CompletionChunk>>;
  create(request: CompletionRequest & { stream?: false }, options?: { signal?: AbortSignal }): Promise<Completion>;
  create(
    request: CompletionRequest,
    options?: { signal?: AbortSignal },
  ): Promise<Completion | AsyncIterable<CompletionChunk>>;
  async create(
    request: CompletionRequest,
    options: { signal?: AbortSignal } = {},
  ): Promise<Completion | AsyncIterable<CompletionChunk>> {
    if (request.n !== undefined && request.n !== null && request.n !== 1) {
      throw new RullamaError("option.out_of_range", `option \`n\`: found ${request.n}; expected 1`);
    }
    const reply = this.#answer(readMessages(request.messages), readOptions(request, options.signal));
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
    // Whoever leaves early wants no more of it; after the end this does nothing.
    reply.cancel();
  }
}

/** A stream that ends its reply also if it is left before it has begun, of which a generator would not hear. */
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
    throw new RullamaError("chat.wrong_type", "`messages` is no list; a list of messages is needed");
  }
  const names = new Map<string, string>();
  return messages.map((message) => {
    const { role, content, name, reasoning_content: thought, tool_calls: calls, tool_call_id: id } = message;
    if (calls !== undefined && calls !== null && !(Array.isArray(calls) && calls.every((call) => call?.function?.name))) {
      throw new RullamaError("chat.wrong_type", "`tool_calls` is no list of calls with a function and its name");
    }
    for (const call of calls ?? []) {
      names.set(call.id, call.function.name);
    }
    const toolName = role === "tool" ? (name ?? names.get(id ?? "")) : undefined;
    const parts = typeof content === "string" || !content ? [] : content;
    const images = parts.flatMap((part) => (part.type === "image_url" ? [base64(part.image_url.url)] : []));
    const texts = parts.flatMap((part) => (part.type === "text" ? [part.text] : []));
    return {
      role,
      content: typeof content === "string" ? content : texts.join(""),
      ...(thought ? { thought } : {}),
      // The engine reads arguments in a string as well.
      ...(calls ? { toolCalls: calls as unknown as ToolCall[] } : {}),
      ...(id ? { toolCallId: id } : {}),
      ...(toolName ? { toolName } : {}),
      ...(images.length > 0 ? { images } : {}),
    };
  });
}

function base64(url: string): string {
  const found = /^data:[^,]*;base64,(.*)$/s.exec(url);
  if (!found?.[1]) {
    throw new RullamaError("chat.wrong_type", "`image_url` is no data URL with base64; one is needed");
  }
  return found[1];
}

/** What would change the answer and cannot be done is refused; what only describes the request is passed over. */
function refuseImpossible(request: CompletionRequest): void {
  const { response_format: format, tool_choice: choice } = request as CompletionRequest & Record<string, unknown>;
  if (format && (format as { type?: unknown }).type !== "text") {
    throw new RullamaError("option.out_of_range", "option `response_format`: only the type `text` is known");
  }
  if (choice && choice !== "auto" && choice !== "none") {
    throw new RullamaError("option.out_of_range", "option `tool_choice`: only `auto` and `none` are known");
  }
}

/** The numbers of a request that are used. */
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

/** Refuses numbers out of range, under the names that the request has for them. */
function checkNumbers(request: CompletionRequest): void {
  for (const [name, range] of Object.entries(NUMBERS)) {
    checkNumber(name, range, request[name as keyof typeof NUMBERS]);
  }
}

function readOptions(request: CompletionRequest, signal?: AbortSignal): ChatOptions {
  refuseImpossible(request);
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
  return finishReason === "stop" && toolCalls.length > 0 ? "tool_calls" : finishReason;
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
    // The first token came with the prompt.
    generate_per_second: rate(Math.max(usage.generatedTokens - 1, 0), generateMs),
  };
}
