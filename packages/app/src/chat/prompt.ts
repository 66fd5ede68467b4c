// A chat as the model sees it.

import type { Message } from "rullama";
import type { Attachment } from "./attachments";
import { before, find, path, type ChatMessage, type Conversation, type Trimmed } from "./tree";

/** A message of the prompt. Its images and sounds are looked up when it is sent. */
export interface PromptMessage extends Message {
  content: string;
  attachments?: readonly Attachment[];
}

/** The messages from the first one to `upTo`; to the end of the shown branch without it. */
export function messagesUpTo(conversation: Conversation, upTo?: string): ChatMessage[] {
  const last = upTo === undefined ? undefined : find(conversation, upTo);
  return last ? [...before(conversation, last.id), last] : path(conversation);
}

/** The latest decision on this branch to leave out old messages. */
export function trimOf(messages: readonly ChatMessage[]): Trimmed | undefined {
  return messages.findLast(({ trimmed }) => trimmed)?.trimmed;
}

/** The prompt for the messages up to `upTo`. `trimmed` leaves out the oldest ones; by default as decided before on this branch. */
export function promptOf(conversation: Conversation, upTo?: string, trimmed?: Trimmed): PromptMessage[] {
  const all = messagesUpTo(conversation, upTo);
  const trim = trimmed ?? trimOf(all);
  const messages: PromptMessage[] = kept(all, trim)
    .filter(({ role, content }) => role === "user" || content !== "")
    .map(({ role, content, attachments = [] }) => ({ role, content, ...(attachments.length > 0 ? { attachments } : {}) }));
  const summary = trim?.summary ? `Summary of the earlier conversation:\n${trim.summary}` : "";
  const system = [conversation.system.trim(), summary].filter((text) => text !== "").join("\n\n");
  return system === "" ? messages : [{ role: "system", content: system }, ...messages];
}

/** The messages that are not left out. */
export function kept(messages: readonly ChatMessage[], trim: Trimmed | undefined): ChatMessage[] {
  const first = trim === undefined ? -1 : messages.findIndex(({ id }) => id === trim.first);
  return messages.slice(Math.max(0, first));
}
