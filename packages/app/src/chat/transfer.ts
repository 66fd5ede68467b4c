// Chats as a JSON file and back. The file may come from anywhere, so every field is checked and unknown ones are dropped.
//
// Version 2 has the images and sounds of the chats as base64. Chats without any are written as version 1, which older apps read too.

import { MOST_ATTACHMENTS, MOST_BYTES, readAttachment, type Attachment } from "./attachments";
import { fromBase64 } from "./base64";
import { newId, type ChatMessage, type Conversation, type MessageState, type Speed, type Trimmed } from "./tree";

const FORMAT = "rullama-conversations";
const STATES: readonly string[] = ["complete", "writing", "stopped", "failed"] satisfies MessageState[];

/** The chats of a file, and the content of their images and sounds by the keys that the file has for them. */
export interface Imported {
  conversations: Conversation[];
  attachments: ReadonlyMap<string, Blob>;
}

/** `attachments`: the content of what is attached to the chats, as base64, by its key. */
export function exportText(conversations: readonly Conversation[], now: number, attachments: Readonly<Record<string, string>> = {}): string {
  const attaches = conversations.some(({ messages }) => messages.some((message) => message.attachments));
  const file = { format: FORMAT, version: attaches ? 2 : 1, exportedAt: new Date(now).toISOString(), conversations, ...(attaches ? { attachments } : {}) };
  return JSON.stringify(file, null, 2);
}

/** Why a file cannot be imported. */
export class ImportError extends Error {
  readonly code: string;

  constructor(message: string, code = "import.invalid") {
    super(message);
    this.code = code;
  }
}

/** The chats in a file. Those whose id is taken get a new one, so that nothing is overwritten. */
export function importText(text: string, taken: ReadonlySet<string>): Imported {
  let file: unknown;
  try {
    file = JSON.parse(text);
  } catch {
    throw new ImportError("the file is not JSON");
  }
  const { format, version, conversations, attachments } = record(file, "the file");
  if (format !== FORMAT) {
    throw new ImportError(`the format is ${JSON.stringify(format) ?? "missing"}; ${FORMAT} was expected`);
  }
  if (version !== 1 && version !== 2) {
    throw new ImportError(`version ${JSON.stringify(version) ?? "?"} is unknown; 1 or 2 was expected`);
  }
  const used = new Set(taken);
  const read = list(conversations, "conversations").map((value, index) => {
    const conversation = readConversation(value, `conversation ${index + 1}`);
    if (used.has(conversation.id)) {
      conversation.id = newId();
    }
    used.add(conversation.id);
    return conversation;
  });
  return { conversations: read, attachments: readContents(record(attachments ?? {}, "attachments"), read) };
}

/** The contents that the chats use, with the types that the chats give them. */
function readContents(contents: Record<string, unknown>, conversations: readonly Conversation[]): Map<string, Blob> {
  const read = new Map<string, Blob>();
  for (const { id, type } of conversations.flatMap(({ messages }) => messages.flatMap((message) => message.attachments ?? []))) {
    if (read.has(id) || !Object.hasOwn(contents, id)) {
      continue;
    }
    const encoded = text(contents[id], "the content of an attachment");
    // Four characters for three bytes.
    const bytes = encoded.length > (MOST_BYTES * 4) / 3 + 4 ? undefined : fromBase64(encoded);
    if (!bytes) {
      throw new ImportError("the content of an attachment is too large, or not base64");
    }
    read.set(id, new Blob([bytes], { type }));
  }
  return read;
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
  if (fields.attachments !== undefined && role === "user") {
    message.attachments = readAttachments(fields.attachments, what);
  }
  if (fields.speed !== undefined) {
    message.speed = readSpeed(fields.speed, what);
  }
  if (fields.trimmed !== undefined) {
    message.trimmed = readTrimmed(fields.trimmed, what);
  }
  return message;
}

function readAttachments(value: unknown, what: string): Attachment[] {
  const attachments = list(value, `attachments of ${what}`);
  if (attachments.length > MOST_ATTACHMENTS) {
    throw new ImportError(`${what} has ${attachments.length} attachments; ${MOST_ATTACHMENTS} are allowed`);
  }
  return attachments.map((one) => {
    const attachment = readAttachment(one);
    if (!attachment) {
      throw new ImportError(`an attachment of ${what} is neither an image nor a sound`);
    }
    return attachment;
  });
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
