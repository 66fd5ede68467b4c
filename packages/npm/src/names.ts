// Options and messages as the JSON that the engine reads, which has other names for some of them.

import { RullamaError } from "./errors.js";
import { withoutMedia, type Take } from "./media/parts.js";
import { checkNumber, type OptionRange, RANGES } from "./ranges.js";
import type { ChatOptions, GenerateOptions, Message, Role } from "./types.js";

const ROLES: readonly Role[] = ["system", "developer", "user", "assistant", "tool"];

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

/** Options that have the same name here and in the engine. */
const SAME = ["stop", "temperature", "seed", "signal"];

/** Refuses an option of generation that does not exist, for callers that cannot wait for the engine to refuse it. */
export function checkOptionNames(options: object): void {
  const known = [...SAME, ...Object.entries(OPTIONS).flat()];
  const unknown = Object.keys(options).find((name) => !known.includes(name));
  if (unknown !== undefined) {
    throw new RullamaError("option.unknown", `Option \`${unknown}\` does not exist. The options are ${[...SAME, ...Object.keys(OPTIONS)].join(", ")}.`);
  }
}

/**
 * The options of a reply as JSON. The engine's own names work as well, and the engine refuses unknown names. Numbers are checked here
 * because the error then has the name that the program used, and because JSON would turn NaN and infinity into null, the default.
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
    // `false` bans a token. The engine refuses a bias that is not an object.
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

/** A conversation as JSON. `take` gets its images and sounds. */
export function messagesJson(messages: readonly Message[], take: Take): string {
  if (!Array.isArray(messages)) {
    throw new RullamaError("chat.wrong_type", "`messages` must be a list of messages.");
  }
  if (messages.length === 0) {
    throw new RullamaError("chat.missing_field", "`messages` is empty. Pass at least one message.");
  }
  messages.forEach(checkRole);
  return JSON.stringify(messages.map((message) => renamed(withoutMedia(message, take), FIELDS)));
}

/** One message as JSON. A text is a message of the user. `take` gets its images and sounds. */
export function messageJson(message: string | Message, take: Take): string {
  if (typeof message === "string") {
    return JSON.stringify({ role: "user", content: message });
  }
  checkRole(message);
  return JSON.stringify(renamed(withoutMedia(message, take), FIELDS));
}

/** Stands for the images and sounds of a prompt that is only shown. */
export const shown: Take = (medium) => medium;

/** Refuses a role that the prompt format does not have: a model would read it as text. The engine reports a missing role. */
function checkRole(message: Message): void {
  const role: unknown = message?.role;
  if (role !== undefined && !ROLES.includes(role as Role)) {
    const shown = typeof role === "string" ? JSON.stringify(role) : String(role);
    throw new RullamaError("option.out_of_range", `There is no role ${shown}. A role is one of ${ROLES.join(", ")}.`);
  }
}

/** Messages from the engine's JSON. */
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
