// Chats as a JSON file and back. The file may come from anywhere, so every field is checked and unknown ones are dropped.

import { newId, type ChatMessage, type Conversation, type MessageState, type Speed, type Trimmed } from "./tree";

const FORMAT = "rullama-conversations";
const STATES: readonly string[] = ["complete", "writing", "stopped", "failed"] satisfies MessageState[];

export function exportText(conversations: readonly Conversation[], now: number): string {
  const file = { format: FORMAT, version: 1, exportedAt: new Date(now).toISOString(), conversations };
  return JSON.stringify(file, null, 2);
}

/** Why a file cannot be imported. */
export class ImportError extends Error {
  readonly code = "import.invalid";
}

/** The chats in a file. Those whose id is taken get a new one, so that nothing is overwritten. */
export function importText(text: string, taken: ReadonlySet<string>): Conversation[] {
  let file: unknown;
  try {
    file = JSON.parse(text);
  } catch {
    throw new ImportError("the file is not JSON");
  }
  const { format, version, conversations } = record(file, "the file");
  if (format !== FORMAT) {
    throw new ImportError(`the format is ${JSON.stringify(format) ?? "missing"}; ${FORMAT} was expected`);
  }
  if (version !== 1) {
    throw new ImportError(`version ${JSON.stringify(version) ?? "?"} is unknown; 1 was expected`);
  }
  const used = new Set(taken);
  return list(conversations, "conversations").map((value, index) => {
    const conversation = readConversation(value, `conversation ${index + 1}`);
    if (used.has(conversation.id)) {
      conversation.id = newId();
    }
    used.add(conversation.id);
    return conversation;
  });
}

function readConversation(value: unknown, what: string): Conversation {
  const fields = record(value, what);
  const known = new Set<string>();
  const messages = list(fields.messages, `messages of ${what}`).map((entry, index) => {
    const message = readMessage(entry, `message ${index + 1} of ${what}`);
    // Parents come first, so no message can be its own ancestor.
    if (known.has(message.id) || (message.parent !== null && !known.has(message.parent))) {
      throw new ImportError(`message ${index + 1} of ${what} does not follow from those before it`);
    }
    known.add(message.id);
    return message;
  });
  const shown: Record<string, string> = {};
  for (const [parent, child] of Object.entries(record(fields.shown ?? {}, `shown of ${what}`))) {
    if (typeof child === "string" && known.has(child) && (parent === "" || known.has(parent))) {
      shown[parent] = child;
    }
  }
  return {
    id: text(fields.id, `id of ${what}`),
    title: text(fields.title, `title of ${what}`).slice(0, 200),
    named: fields.named === true,
    system: text(fields.system ?? "", `system prompt of ${what}`),
    createdAt: time(fields.createdAt, `createdAt of ${what}`),
    updatedAt: time(fields.updatedAt, `updatedAt of ${what}`),
    messages,
    shown,
  };
}

function readMessage(value: unknown, what: string): ChatMessage {
  const fields = record(value, what);
  const { role, state, parent } = fields;
  if (role !== "user" && role !== "assistant") {
    throw new ImportError(`the role of ${what} is ${JSON.stringify(role) ?? "missing"}`);
  }
  if (typeof state !== "string" || !STATES.includes(state)) {
    throw new ImportError(`the state of ${what} is ${JSON.stringify(state) ?? "missing"}`);
  }
  const message: ChatMessage = {
    id: text(fields.id, `id of ${what}`),
    parent: parent === null ? null : text(parent, `parent of ${what}`),
    role,
    content: text(fields.content, `content of ${what}`),
    createdAt: time(fields.createdAt, `createdAt of ${what}`),
    state: state === "writing" ? "stopped" : (state as MessageState),
  };
  if (fields.thought !== undefined) {
    message.thought = text(fields.thought, `thought of ${what}`);
  }
  if (fields.model !== undefined) {
    message.model = text(fields.model, `model of ${what}`);
  }
  if (fields.cut === true) {
    message.cut = true;
  }
  if (fields.error !== undefined) {
    const error = record(fields.error, `error of ${what}`);
    message.error = { code: text(error.code, `error of ${what}`), message: text(error.message, `error of ${what}`) };
  }
  if (fields.speed !== undefined) {
    message.speed = readSpeed(fields.speed, what);
  }
  if (fields.trimmed !== undefined) {
    message.trimmed = readTrimmed(fields.trimmed, what);
  }
  return message;
}

function readTrimmed(value: unknown, what: string): Trimmed {
  const fields = record(value, `trimmed of ${what}`);
  const trimmed: Trimmed = { first: text(fields.first, `trimmed of ${what}`), dropped: time(fields.dropped, `trimmed of ${what}`) };
  return fields.summary === undefined ? trimmed : { ...trimmed, summary: text(fields.summary, `summary of ${what}`) };
}

function readSpeed(value: unknown, what: string): Speed {
  const fields = record(value, `speed of ${what}`);
  const read = (name: keyof Speed) => time(fields[name], `${name} of ${what}`);
  return {
    promptTokens: read("promptTokens"),
    reusedTokens: read("reusedTokens"),
    generatedTokens: read("generatedTokens"),
    promptMs: read("promptMs"),
    generateMs: read("generateMs"),
  };
}

function record(value: unknown, what: string): Record<string, unknown> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw new ImportError(`${what} is not an object`);
  }
  return value as Record<string, unknown>;
}

function list(value: unknown, what: string): unknown[] {
  if (!Array.isArray(value)) {
    throw new ImportError(`${what}: a list was expected`);
  }
  return value;
}

function text(value: unknown, what: string): string {
  if (typeof value !== "string") {
    throw new ImportError(`${what}: a text was expected`);
  }
  return value;
}

function time(value: unknown, what: string): number {
  if (typeof value !== "number" || !Number.isFinite(value)) {
    throw new ImportError(`${what}: a number was expected`);
  }
  return value;
}
