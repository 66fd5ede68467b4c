// What each error means for the user, and what they can do about it.
//
// The codes are the npm package's contract. A code without an entry falls back to its family, the part before the last dot, and then to
// a general sentence. The package's own message is shown behind "Details". Images and sounds are in media-errors.ts.

import { bytes, count } from "./format";
import { MEDIA_ENTRIES } from "./media-errors";

/** The step that the button next to the message takes. `room`: make room in the context. `backend`: let the app choose what computes. */
export type Step = "retry" | "reload" | "models" | "settings" | "backend" | "device" | "replace" | "room" | "none";

export interface Explanation {
  code: string;
  title: string;
  text: string;
  step: Step;
  /** The package's message, without a stack trace. */
  detail: string;
}

export interface Entry {
  title: string;
  text: string | ((details: Details) => string);
  step: Step;
}

export type Details = Readonly<Record<string, unknown>>;

const CPU_HAS_ROOM = "The CPU has room for it, but is slower.";

const number = (value: unknown): number | undefined => (typeof value === "number" ? value : undefined);

/** The name of the file that an error is about, in quotation marks, or other words for it. */
const nameOf = (details: Details, otherwise: string) => (typeof details.file === "string" && details.file !== "" ? `“${details.file}”` : otherwise);

function tooLarge(details: Details): string {
  const largest = number(details.largestContext);
  const advice = largest
    ? `It needs more memory than this device offers. It would fit with a context of ${count(largest)} tokens.`
    : "It needs more memory than this device offers. Choose a smaller model, or a smaller context in the settings.";
  return details.fitsOnCpu ? `${advice} ${CPU_HAS_ROOM}` : advice;
}

function exhausted(details: Details): string {
  const advice = "Close other tabs and programs that use the GPU, or choose a smaller context or a smaller model.";
  return details.fitsOnCpu ? `${advice} ${CPU_HAS_ROOM}` : advice;
}

function contextTooLarge(details: Details): string {
  const largest = number(details.largestContext);
  return largest
    ? `The model supports a context of up to ${count(largest)} tokens. Choose that or less in the settings.`
    : "Choose a smaller context in the settings.";
}

function overflow(details: Details): string {
  const [tokens, context] = [number(details.tokens), number(details.context)];
  const facts =
    tokens === undefined || context === undefined
      ? "The chat has as many tokens as the context holds."
      : `With your message the chat has ${count(tokens)} tokens; the context holds ${count(context)}.`;
  return `${facts} Leave out the oldest messages, let the model summarise them, or load the model with a larger context.`;
}

/** What an HTTP status other than success means. */
function status(details: Details): string {
  const code = number(details.status);
  if (code === undefined) {
    return "The server answered, but not with the file. Check the address.";
  }
  if (code === 404 || code === 410) {
    return `There is no file at that address (HTTP ${code}). Check the spelling.`;
  }
  if (code === 401 || code === 403) {
    return `The server requires you to sign in (HTTP ${code}). Download the file in another tab, then open it from your disk.`;
  }
  if (code === 429) {
    return `The server has had too many requests (HTTP ${code}). Try again later. The part that you have downloaded is kept.`;
  }
  if (code >= 500) {
    return `The server has a problem (HTTP ${code}). Try again later. The part that you have downloaded is kept.`;
  }
  return `The server answered with HTTP ${code}. Check the address.`;
}

function quota(details: Details): string {
  const [needed, free] = [number(details.needed), number(details.free)];
  const facts =
    needed === undefined
      ? "The browser has no more storage for this page."
      : `The model needs ${bytes(needed)} more${free === undefined ? "" : `; the browser allows ${bytes(free)}`}.`;
  return `${facts} Delete a stored model or free some disk space. The part that you have downloaded is kept.`;
}

const ANOTHER_FILE = "Another file of the same model may work.";

const ENTRIES: Readonly<Record<string, Entry>> = {
  ...MEDIA_ENTRIES,

  cancelled: { title: "Stopped", text: "You stopped it before it was done.", step: "retry" },

  "device.lost": {
    title: "The GPU stopped responding",
    text: "The browser lost its connection to the GPU. This happens after sleep, a driver update, or when memory runs out. Your chat is safe.",
    step: "retry",
  },
  "device.unavailable": {
    title: "No GPU available",
    text: "The settings ask for the GPU, but this browser offers none. Without that setting, the CPU computes.",
    step: "backend",
  },
  "device.refused": {
    title: "The GPU can't run this model",
    text: "Its limits are lower than the model needs. Try a smaller model or a smaller context.",
    step: "models",
  },
  "device.unreliable": {
    title: "The GPU gives wrong results",
    text: "The settings ask for the GPU, but its self-test found wrong results and no way around them. Without that setting, the CPU computes. A newer driver or browser may help.",
    step: "backend",
  },
  "memory.too_large": { title: "This model doesn't fit in memory", text: tooLarge, step: "settings" },
  "memory.exhausted": {
    title: "The GPU is out of memory",
    text: exhausted,
    step: "settings",
  },
  "context.overflow": { title: "The context is full", text: overflow, step: "room" },
  "context.message": {
    title: "This message is too long",
    text: "It is longer than the whole context. Shorten it, or load the model with a larger context.",
    step: "settings",
  },
  "context.answer": { title: "The answer fills the context", text: "Load the model with a larger context.", step: "settings" },
  "context.too_large": { title: "The context is too large", text: contextTooLarge, step: "settings" },

  gguf: {
    title: "This file is damaged",
    text: (details) => `${nameOf(details, "The file")} is not a complete GGUF file. Download it again.`,
    step: "models",
  },
  "gguf.not_gguf": {
    title: "This isn't a GGUF file",
    text: (details) => `${nameOf(details, "The file")} is something else, such as a document or a web page. Models are files that end in .gguf.`,
    step: "models",
  },
  "gguf.truncated": {
    title: "This file is incomplete",
    text: (details) => `${nameOf(details, "The file")} ends too early. Download it again.`,
    step: "models",
  },
  "gguf.split": {
    title: "A part of the model is missing",
    text: "This model consists of several files. Choose all of them together.",
    step: "models",
  },
  model: {
    title: "This model isn't supported",
    text: "rullama runs models of the Gemma 4 family. This file is another model, or differs from the ones rullama knows.",
    step: "models",
  },
  "model.not_finite": {
    title: "The model produced invalid numbers",
    text: "The file is probably damaged. Download it again, or use another file of the same model.",
    step: "models",
  },
  format: {
    title: "This weight format isn't supported",
    text: `The file uses a quantisation that this version doesn't know. ${ANOTHER_FILE}`,
    step: "models",
  },
  "model.no_images": {
    title: "This model can't see images",
    text: "It reads text only, or its file lacks the part that sees. Choose a model that takes images, or a chat without any.",
    step: "models",
  },
  "model.no_audio": {
    title: "This model can't hear",
    text: "It takes no sounds, or its file lacks the part that hears. Choose a model that takes sounds, or a chat without any.",
    step: "models",
  },
  metadata: { title: "This file's description is incomplete", text: `It lacks information that rullama needs to run the model. ${ANOTHER_FILE}`, step: "models" },
  tokenizer: { title: "This file's vocabulary can't be used", text: ANOTHER_FILE, step: "models" },
  chat: { title: "The chat can't be sent", text: "One of its messages has a form that the model doesn't accept.", step: "none" },
  input: { title: "The message is empty", text: "Write a message first.", step: "none" },
  option: { title: "A setting is invalid", text: "One of the settings has a value that doesn't work. Reset the settings.", step: "settings" },
  sample: {
    title: "The model produced invalid numbers",
    text: "Try again. If it happens again, run the self-test on the Device page.",
    step: "retry",
  },

  source: { title: "The model can't be read", text: "Reading the file stopped before its end. Try again.", step: "retry" },
  "source.address": { title: "This isn't a web address", text: "Enter the full address of a GGUF file. It begins with https://.", step: "models" },
  "source.connection": {
    title: "The server can't be reached",
    text: "The address may be wrong, the server may be down, or your network may be offline. The part that you have downloaded is kept.",
    step: "retry",
  },
  "source.offline": { title: "You are offline", text: "Connect to the network and try again.", step: "retry" },
  "source.timeout": {
    title: "The server doesn't answer",
    text: (details) => `${nameOf(details, "The server")} did not answer within ${number(details.seconds) ?? "a few"} seconds. Check the address, or try again later.`,
    step: "retry",
  },
  "source.cors": {
    title: "The server doesn't allow this",
    text: "It answers, but does not let other sites read its files (CORS). Download the file in another tab, then open it from your disk.",
    step: "models",
  },
  "source.status": { title: "The server didn't send the file", text: status, step: "retry" },
  "source.range_ignored": {
    title: "The server sends only whole files",
    text: "rullama reads models in pieces, which this server doesn't support. Download the file, then open it from your disk.",
    step: "models",
  },
  "source.content_range": {
    title: "The server doesn't tell the file's size",
    text: "Is this the address of a web page? Use the address of the file itself, which usually ends in .gguf, or download the file and open it from your disk.",
    step: "models",
  },
  "source.changed": { title: "The file changed", text: "The server replaced it while it was being read. Try again.", step: "retry" },
  "source.too_slow": { title: "The server is too slow", text: "Almost no data arrives. Try again later, or use another address.", step: "retry" },
  "source.truncated": { title: "The download is incomplete", text: "The server sent less than it announced. Try again.", step: "retry" },
  "source.io": {
    title: "The file can't be read",
    text: "It was moved, changed or deleted after you chose it. Choose it again.",
    step: "models",
  },

  "storage.quota": { title: "Not enough storage", text: quota, step: "models" },
  "storage.unavailable": {
    title: "This browser can't store models here",
    text: "Private windows and some settings forbid it. You can use a model without storing it.",
    step: "models",
  },
  "storage.corrupt": {
    title: "The stored file is damaged",
    text: "Check it for damage to repair it, or delete it and download it again.",
    step: "models",
  },
  "storage.missing": { title: "The model is no longer stored", text: "It was deleted, perhaps by the browser. Download it again.", step: "models" },
  "storage.busy": {
    title: "The file is in use",
    text: "Another tab is reading or writing it. Close that tab, or wait until it is done.",
    step: "retry",
  },
  "storage.exists": {
    title: "This name is taken",
    text: "Another file of this name is stored, perhaps an older version. Replace the stored file, or use it from the list.",
    step: "replace",
  },

  "engine.unloaded": { title: "No model is loaded", text: "Load a model to continue.", step: "reload" },
  "worker.failed": {
    title: "The engine stopped",
    text: "The browser ended it, probably because memory ran out. Load the model again. Your chat is safe.",
    step: "reload",
  },
  internal: {
    title: "Internal error",
    text: "This is a bug in rullama. Loading the model again usually helps. Your chat is safe.",
    step: "reload",
  },
  "report.refused": {
    title: "The server refused the report",
    text: (details) => `It said: ${typeof details.reason === "string" ? details.reason : "nothing"}.`,
    step: "none",
  },
  "import.invalid": {
    title: "This file can't be imported",
    text: "It isn't an export of chats from this app.",
    step: "none",
  },
};

const UNKNOWN: Entry = {
  title: "Something went wrong",
  text: "An unexpected error occurred. Try again.",
  step: "retry",
};

/** Explains anything that was thrown. */
export function explain(thrown: unknown): Explanation {
  const error = (thrown ?? {}) as { code?: unknown; message?: unknown; details?: unknown; name?: unknown };
  const code = typeof error.code === "string" && error.code !== "" ? error.code : error.name === "AbortError" ? "cancelled" : "unknown";
  const entry = nearest(code) ?? UNKNOWN;
  const details = (typeof error.details === "object" && error.details !== null ? error.details : {}) as Details;
  return {
    code,
    title: entry.title,
    text: typeof entry.text === "string" ? entry.text : entry.text(details),
    step: entry.step,
    detail: firstLine(typeof error.message === "string" ? error.message : String(thrown)),
  };
}

/** Every code with an entry of its own. For tests. */
export const KNOWN_CODES: readonly string[] = Object.keys(ENTRIES);

/** The entry of a code, or of the smallest of its families that has one. */
function nearest(code: string): Entry | undefined {
  const dot = code.lastIndexOf(".");
  return Object.hasOwn(ENTRIES, code) ? ENTRIES[code] : dot < 0 ? undefined : nearest(code.slice(0, dot));
}

/** Some messages carry a stack trace in further lines. */
function firstLine(text: string): string {
  return (text.split("\n")[0] as string).slice(0, 400);
}
