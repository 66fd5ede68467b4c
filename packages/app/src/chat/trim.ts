// Making room in a full context: the oldest turns are left out, and the model may summarise them first.

import type { Engine, ImageBudget } from "rullama";
import { titleOfAttachment } from "./attachments";
import { mediaTokens, textOnly } from "./media";
import { kept, messagesUpTo, promptOf, trimOf, type PromptMessage } from "./prompt";
import type { ChatMessage, Conversation, Trimmed } from "./tree";

/** Counts the tokens of a prompt. */
export type Measure = (messages: PromptMessage[]) => Promise<number>;

/** The part of the context that the prompt may fill afterwards. The rest is for the answer and the next turns. */
const FILLED = 0.5;

/** The most tokens of a summary, as a part of the context. */
const SUMMARY = 0.125;

export function measureWith(engine: Engine, budget: ImageBudget): Measure {
  return async (messages) => (await engine.tokenize(await engine.render(textOnly(messages)))).length + mediaTokens(messages, budget);
}

/**
 * Which messages to leave out so that the question `upTo` fits: whole turns, oldest first, as few as possible. Undefined if the
 * question alone is too long. Where an answer is continued, `measure` counts the part that exists as well.
 */
export async function planTrim(conversation: Conversation, upTo: string, context: number, measure: Measure): Promise<Trimmed | undefined> {
  const all = messagesUpTo(conversation, upTo);
  const now = kept(all, trimOf(all));
  // A turn begins with a question.
  const starts = now.filter(({ role }, index) => role === "user" && index > 0);
  let fitting: Trimmed | undefined;
  for (const { id } of starts) {
    const trimmed: Trimmed = { first: id, dropped: all.findIndex((message) => message.id === id) };
    const tokens = await measure(promptOf(conversation, upTo, trimmed));
    if (tokens < context * FILLED) {
      return trimmed;
    }
    if (tokens < context) {
      fitting = trimmed;
    }
  }
  return fitting;
}

/** The prompt that asks for a summary of the messages that `trimmed` leaves out, as many of the latest ones as fit the context. */
export async function summaryPrompt(conversation: Conversation, upTo: string, trimmed: Trimmed, context: number, measure: Measure): Promise<PromptMessage[]> {
  const all = messagesUpTo(conversation, upTo);
  const before = trimOf(all)?.summary;
  let left = kept(all, trimOf(all)).filter((message) => all.indexOf(message) < trimmed.dropped);
  for (;;) {
    const prompt = requestSummary(left, before);
    if (left.length <= 1 || (await measure(prompt)) < context - summaryTokens(context)) {
      return prompt;
    }
    left = left.slice(1);
  }
}

/** The most tokens of a summary. */
export function summaryTokens(context: number): number {
  return Math.max(32, Math.floor(context * SUMMARY));
}

function requestSummary(messages: readonly ChatMessage[], before: string | undefined): PromptMessage[] {
  // Of images and sounds, the summary knows what was said about them.
  const named = ({ attachments = [] }: ChatMessage) => attachments.map((one) => `(${one.medium}: ${titleOfAttachment(one)}) `).join("");
  const lines = messages.map((message) => `${message.role === "user" ? "User" : "Assistant"}: ${named(message)}${message.content}`);
  const text = [...(before ? [`Earlier: ${before}`] : []), ...lines].join("\n\n");
  const request = "Summarise this conversation in a few sentences. Keep names, numbers and decisions. Write only the summary.";
  return [{ role: "user", content: `${request}\n\n${text}` }];
}
