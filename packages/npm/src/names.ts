// The names of options and fields here, and in the JSON that the engine reads.

import { RullamaError } from "./errors.js";
import { checkNumber, type OptionRange, RANGES } from "./ranges.js";
import type { ChatOptions, GenerateOptions, Message } from "./types.js";

const OPTIONS: Readonly<Record<string, string>> = {
  maxTokens: "max_tokens",
  topK: "top_k",
  topP: "top_p",
  minP: "min_p",
  typicalP: "typical_p",
  repeatPenalty: "repeat_penalty",
  repeatLastN: "repeat_last_n",
  frequencyPenalty: "frequency_penalty",
  presencePenalty: "presence_penalty",
  logitBias: "logit_bias",
  topLogprobs: "top_logprobs",
  ignoreEos: "ignore_eos",
};

const FIELDS: Readonly<Record<string, string>> = {
  thought: "thinking",
  toolCalls: "tool_calls",
  toolName: "tool_name",
  toolCallId: "tool_call_id",
};

const FIELDS_BACK = Object.fromEntries(Object.entries(FIELDS).map(([here, there]) => [there, here]));

/**
 * The options of a reply as JSON. The engine's own names are understood as well; it refuses names that it does not know. Numbers are
 * checked here, where the name is still the program's: in JSON a NaN or an infinity would become null, which means the default.
 */
export function optionsJson(options: ChatOptions | GenerateOptions): string {
  const { signal: _, ...rest } = options;
  for (const [name, value] of Object.entries(rest)) {
    checkOption(name, value);
  }
  return JSON.stringify(renamed(rest, OPTIONS));
}

function checkOption(name: string, value: unknown): void {
  const known = OPTIONS[name] ?? name;
  if (known === "logit_bias") {
    // `false` rules a token out. The engine refuses what is no object.
    for (const [id, bias] of Object.entries(value ?? {})) {
      if (bias !== false) {
        checkNumber(`${name}[${id}]`, RANGES.logit_bias, bias ?? Number.NaN);
      }
    }
    return;
  }
  const range: OptionRange | undefined = Object.hasOwn(RANGES, known) ? RANGES[known as keyof typeof RANGES] : undefined;
  if (range) {
    checkNumber(name, range, value);
  }
}

/** A conversation as JSON. */
export function messagesJson(messages: readonly Message[]): string {
  if (!Array.isArray(messages)) {
    throw new RullamaError("chat.wrong_type", "`messages` is no list; a list of messages is needed");
  }
  if (messages.length === 0) {
    throw new RullamaError("chat.missing_field", "`messages` is empty; at least one message is needed");
  }
  return JSON.stringify(messages.map((message) => renamed(message, FIELDS)));
}

/** One message as JSON; a text is what the user says. */
export function messageJson(message: string | Message): string {
  return JSON.stringify(typeof message === "string" ? { role: "user", content: message } : renamed(message, FIELDS));
}

/** Messages out of the engine's JSON. */
export function readMessages(json: string): Message[] {
  const messages = JSON.parse(json) as Record<string, unknown>[];
  return messages.map((message) => renamed(message, FIELDS_BACK) as unknown as Message);
}

function renamed(object: object, names: Readonly<Record<string, string>>): Record<string, unknown> {
  if (object === null || typeof object !== "object") {
    return object;
  }
  return Object.fromEntries(Object.entries(object).map(([name, value]) => [names[name] ?? name, value]));
}
