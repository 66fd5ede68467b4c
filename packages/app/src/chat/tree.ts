// A conversation as a tree of messages. Editing or regenerating a message adds a sibling. Each parent remembers which of its
// children is shown, so that switching back finds what followed.

import { titleOfAttachment, type Attachment } from "./attachments";

export type MessageState = "complete" | "writing" | "stopped" | "failed";

export interface ChatMessage {
  id: string;
  /** The message before this one; null for a first one. */
  parent: string | null;
  role: "user" | "assistant";
  content: string;
  /** Of a question: its images and sounds, which the model gets before the text. */
  attachments?: readonly Attachment[];
  thought?: string;
  createdAt: number;
  state: MessageState;
  /** Of an answer: the model that wrote it. */
  model?: string;
  /** Of an answer: the error that ended it, with the npm package's code. */
  error?: { code: string; message: string; details?: Readonly<Record<string, unknown>> };
  /** Of an answer: it ended at the token limit or because the context was full. */
  cut?: boolean;
  /** Of an answer: from here on, the oldest messages are left out of the prompt. */
  trimmed?: Trimmed;
  speed?: Speed;
}

export interface Trimmed {
  /** The first message that is not left out. */
  first: string;
  /** How many messages before it are left out. */
  dropped: number;
  /** The model's summary of them. Empty while it is to be written; missing if none was wanted. */
  summary?: string;
}

export interface Speed {
  promptTokens: number;
  reusedTokens: number;
  generatedTokens: number;
  /** Milliseconds to the first token. */
  promptMs: number;
  /** Milliseconds from the first token to the last. */
  generateMs: number;
}

export interface Conversation {
  id: string;
  title: string;
  /** Whether the user chose the title; otherwise it comes from the first message. */
  named: boolean;
  system: string;
  createdAt: number;
  updatedAt: number;
  /** In the order they were written: a parent comes before its children. */
  messages: ChatMessage[];
  /** The shown child of each parent; the key `""` is for first messages. */
  shown: Record<string, string>;
}

/** The position of a message among its siblings. */
export interface Place {
  index: number;
  count: number;
  ids: string[];
}

export function newId(): string {
  // Not by `randomUUID`, which pages without https do not have.
  return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

export function newConversation(now: number, system = ""): Conversation {
  return { id: newId(), title: "New chat", named: false, system, createdAt: now, updatedAt: now, messages: [], shown: {} };
}

export function children(conversation: Conversation, parent: string | null): ChatMessage[] {
  return conversation.messages.filter((message) => message.parent === parent);
}

export function find(conversation: Conversation, id: string): ChatMessage | undefined {
  return conversation.messages.find((message) => message.id === id);
}

/** The shown messages, from first to last. */
export function path(conversation: Conversation): ChatMessage[] {
  const shown: ChatMessage[] = [];
  let parent: string | null = null;
  for (;;) {
    const options: ChatMessage[] = children(conversation, parent);
    const wanted: string | undefined = conversation.shown[parent ?? ""];
    const next: ChatMessage | undefined = options.find(({ id }) => id === wanted) ?? options.at(-1);
    if (!next) {
      return shown;
    }
    shown.push(next);
    parent = next.id;
  }
}

/** The messages before one, from the first on. */
export function before(conversation: Conversation, id: string): ChatMessage[] {
  const found: ChatMessage[] = [];
  let parent = find(conversation, id)?.parent ?? null;
  while (parent !== null) {
    const message = find(conversation, parent);
    if (!message) {
      break;
    }
    found.unshift(message);
    parent = message.parent;
  }
  return found;
}

/** Adds a message and shows it. */
export function add(conversation: Conversation, message: ChatMessage): ChatMessage {
  conversation.messages.push(message);
  show(conversation, message.id);
  conversation.updatedAt = Math.max(conversation.updatedAt, message.createdAt);
  if (!conversation.named && message.role === "user" && message.parent === null) {
    const [first] = message.attachments ?? [];
    conversation.title = message.content.trim() === "" && first ? titleOfAttachment(first) : titleOf(message.content);
  }
  return message;
}

export function place(conversation: Conversation, id: string): Place {
  const parent = find(conversation, id)?.parent ?? null;
  const ids = children(conversation, parent).map((message) => message.id);
  return { index: ids.indexOf(id), count: ids.length, ids };
}

/** Shows a message and its ancestors. */
export function show(conversation: Conversation, id: string): void {
  let message = find(conversation, id);
  while (message) {
    conversation.shown[message.parent ?? ""] = message.id;
    message = message.parent === null ? undefined : find(conversation, message.parent);
  }
}

/** Removes a message that has no children. */
export function removeLeaf(conversation: Conversation, id: string): void {
  const message = find(conversation, id);
  if (!message || children(conversation, id).length > 0) {
    return;
  }
  conversation.messages.splice(conversation.messages.indexOf(message), 1);
  const parent = message.parent ?? "";
  if (conversation.shown[parent] === id) {
    delete conversation.shown[parent];
  }
}

/** The title that a first message gives its conversation. */
export function titleOf(text: string): string {
  const line = text.split("\n").map((part) => part.trim()).find((part) => part !== "") ?? "";
  const words = line.replace(/\s+/g, " ");
  if (words === "") {
    return "New chat";
  }
  return words.length <= 60 ? words : `${words.slice(0, 59).trimEnd()}…`;
}

/** Marks answers as stopped that were being written when the page was closed. */
export function settle(conversation: Conversation): boolean {
  const writing = conversation.messages.filter(({ state }) => state === "writing");
  writing.forEach((message) => {
    message.state = "stopped";
  });
  return writing.length > 0;
}
