// A conversation as a tree of messages. Editing or regenerating adds a sibling; which of several siblings is shown is kept
// for each parent, so that switching back finds what followed.

export type MessageState = "complete" | "writing" | "stopped" | "failed";

export interface ChatMessage {
  id: string;
  /** The message before this one; null for a first one. */
  parent: string | null;
  role: "user" | "assistant";
  content: string;
  thought?: string;
  createdAt: number;
  state: MessageState;
  /** Of an answer: which model wrote it. */
  model?: string;
  /** Of an answer: what went wrong, with the code of the package. */
  error?: { code: string; message: string; details?: Readonly<Record<string, unknown>> };
  /** Of an answer: that it ended for want of room. */
  cut?: boolean;
  speed?: Speed;
}

export interface Speed {
  promptTokens: number;
  reusedTokens: number;
  generatedTokens: number;
  /** Milliseconds until the first word. */
  promptMs: number;
  /** Milliseconds from the end of the prompt to the end. */
  generateMs: number;
}

export interface Conversation {
  id: string;
  title: string;
  /** Whether somebody chose the title; else the first message gives it. */
  named: boolean;
  system: string;
  createdAt: number;
  updatedAt: number;
  /** In the order in which they were written; a parent comes before its children. */
  messages: ChatMessage[];
  /** For each parent with several children the one that is shown; `""` stands for the beginning. */
  shown: Record<string, string>;
}

/** Where in a group of siblings a message stands. */
export interface Place {
  index: number;
  count: number;
  ids: string[];
}

export function newId(): string {
  return crypto.randomUUID();
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

/** The messages that are shown, from the first to the last. */
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

/** The messages before one, from the first on; without it. */
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
    conversation.title = titleOf(message.content);
  }
  return message;
}

export function place(conversation: Conversation, id: string): Place {
  const parent = find(conversation, id)?.parent ?? null;
  const ids = children(conversation, parent).map((message) => message.id);
  return { index: ids.indexOf(id), count: ids.length, ids };
}

/** Shows a message, and with it all that leads to it. */
export function show(conversation: Conversation, id: string): void {
  let message = find(conversation, id);
  while (message) {
    conversation.shown[message.parent ?? ""] = message.id;
    message = message.parent === null ? undefined : find(conversation, message.parent);
  }
}

/** Takes a message away that nothing follows. */
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

/** What a conversation is called after its first message. */
export function titleOf(text: string): string {
  const line = text.split("\n").map((part) => part.trim()).find((part) => part !== "") ?? "";
  const words = line.replace(/\s+/g, " ");
  if (words === "") {
    return "New chat";
  }
  return words.length <= 60 ? words : `${words.slice(0, 59).trimEnd()}…`;
}

/** Answers that were being written when the page went away are what they are. */
export function settle(conversation: Conversation): boolean {
  const writing = conversation.messages.filter(({ state }) => state === "writing");
  writing.forEach((message) => {
    message.state = "stopped";
  });
  return writing.length > 0;
}
