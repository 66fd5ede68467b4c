// What each error means to the person in front of the screen, and what they can do about it.
//
// Codes are the package's contract. A code without an entry falls back to that of its family, the part before the dot, and
// then to a sentence that admits not knowing. The package's own message is kept as a detail that can be unfolded.

import { bytes, count } from "./format";

/** What a button next to the message does. */
export type Step = "retry" | "reload" | "models" | "settings" | "device" | "replace" | "none";

export interface Explanation {
  code: string;
  title: string;
  text: string;
  step: Step;
  /** What the package said; never a stack. */
  detail: string;
}

interface Told {
  title: string;
  text: string | ((details: Details) => string);
  step: Step;
}

type Details = Readonly<Record<string, unknown>>;

const number = (value: unknown): number | undefined => (typeof value === "number" ? value : undefined);

const smaller = (details: Details) => {
  const largest = number(details.largestContext);
  return largest
    ? `A context of ${count(largest)} tokens would fit. Choose that in the settings and load the model again.`
    : "Choose a smaller context in the settings, or a smaller model.";
};

const atMost = (details: Details) => {
  const largest = number(details.largestContext);
  return largest
    ? `The model was made for conversations of up to ${count(largest)} tokens. Choose no more than that in the settings.`
    : smaller(details);
};

/** What an answer other than the file means. */
function answered(details: Details): string {
  const status = number(details.status);
  if (status === undefined) {
    return "It answered, but not with the file. Check the address; the file may have moved or need permission.";
  }
  if (status === 404 || status === 410) {
    return `There is no file at that address (${status}). Is it spelt as it should be?`;
  }
  if (status === 401 || status === 403) {
    return `It asks for permission (${status}). Download the file by hand, signed in, and open it from disk.`;
  }
  if (status === 429) {
    return `It has had too many requests (${status}). Try again in a while; what has been stored is kept.`;
  }
  if (status >= 500) {
    return `The server has a fault of its own (${status}). Try again later; what has been stored is kept.`;
  }
  return `It answered with the status ${status}. Check the address.`;
}

const TOLD: Readonly<Record<string, Told>> = {
  cancelled: { title: "Stopped", text: "It was stopped before it was done.", step: "retry" },

  "device.lost": {
    title: "The graphics processor went away",
    text: "The browser lost its connection to it, which happens after sleep, a driver update or too little memory. The conversation is safe.",
    step: "retry",
  },
  "device.unavailable": {
    title: "No graphics processor to use",
    text: "This browser offers no WebGPU here. The Device page says what to do about it.",
    step: "device",
  },
  "device.refused": {
    title: "The graphics processor refused",
    text: "It allows less than the model needs. A smaller model or a smaller context may work.",
    step: "models",
  },
  "device.unreliable": {
    title: "The graphics processor calculates wrongly",
    text: "The self-test found wrong results that could not be worked around. A newer driver or browser usually helps.",
    step: "device",
  },
  "memory.too_large": { title: "The model does not fit", text: smaller, step: "settings" },
  "memory.exhausted": {
    title: "The graphics processor has no memory left",
    text: "Close other tabs and programs that use it, or choose a smaller context or model.",
    step: "settings",
  },
  "context.overflow": {
    title: "The conversation is full",
    text: (details) => {
      const [tokens, context] = [number(details.tokens), number(details.context)];
      const facts =
        tokens === undefined || context === undefined
          ? "It has as many tokens as its context holds."
          : `With your message it has ${count(tokens)} tokens, and the context holds ${count(context)}.`;
      return `${facts} Shorten the message, start a new chat, or load the model with a larger context.`;
    },
    step: "settings",
  },
  "context.too_large": { title: "The context is too large", text: atMost, step: "settings" },

  gguf: {
    title: "Not a model file",
    text: "The file is not a whole GGUF file. Is it complete, and is it the file you meant?",
    step: "models",
  },
  "gguf.not_gguf": {
    title: "Not a model file",
    text: "What is there is something else than a GGUF model: perhaps a web page, such as one that asks to sign in. Use the address of the file itself, which usually ends in .gguf.",
    step: "models",
  },
  "gguf.truncated": {
    title: "The file ends too early",
    text: "It is not complete. Download it again.",
    step: "models",
  },
  "gguf.split": {
    title: "A part of the model is missing",
    text: "This model consists of several files. Choose all of them together.",
    step: "models",
  },
  model: {
    title: "This model cannot run here",
    text: "Only models of the Gemma 4 family do, and something about this one does not match.",
    step: "models",
  },
  "model.not_finite": {
    title: "The model's numbers are unusable",
    text: "It computed a number that is infinite or none at all. Its file is most likely damaged: download it again, or use another file of the same model.",
    step: "models",
  },
  format: {
    title: "An unknown format of weights",
    text: "The file uses a quantisation that this version does not know. Another file of the same model may work.",
    step: "models",
  },
  metadata: { title: "The file describes itself incompletely", text: "Another file of the same model may work.", step: "models" },
  tokenizer: { title: "The file's vocabulary is unusable", text: "Another file of the same model may work.", step: "models" },
  chat: { title: "The conversation cannot be read", text: "A message of it has a form that the model does not take.", step: "none" },
  input: { title: "There is nothing to answer", text: "Write a message first.", step: "none" },
  option: { title: "A setting is not allowed", text: "One of the settings has a value that does not work. Resetting them helps.", step: "settings" },
  sample: {
    title: "The model lost its thread",
    text: "Its numbers became unusable. Try again; if it stays, the Device page shows whether the graphics processor is at fault.",
    step: "retry",
  },

  source: { title: "The model cannot be read", text: "Reading it stopped midway. Try again.", step: "retry" },
  "source.connection": {
    title: "The server cannot be reached",
    text: "Either the network is down, or that server does not let other sites read its files (CORS). What has been stored is kept and can be resumed. A file that you download by hand always works.",
    step: "retry",
  },
  "source.status": { title: "The server gives no file", text: answered, step: "retry" },
  "source.range_ignored": {
    title: "The server sends whole files only",
    text: "Models are read and resumed in parts, which that server does not do. Download the file by hand and open it from disk.",
    step: "models",
  },
  "source.content_range": {
    title: "The server does not say how large the file is",
    text: "That is so for web pages, such as one that asks to sign in. Use the address of the file itself, which usually ends in .gguf, or download it by hand and open it from disk.",
    step: "models",
  },
  "source.changed": { title: "The file changed", text: "It became another one while it was being read. Try again.", step: "retry" },
  "source.too_slow": { title: "The server is too slow", text: "Almost nothing comes from it. Try again later, or use another address of the same file.", step: "retry" },
  "source.truncated": { title: "The file ends too early", text: "Less came than was announced. Try again.", step: "retry" },
  "source.io": {
    title: "The file cannot be read any more",
    text: "It was moved, changed or deleted since it was chosen. Choose it again.",
    step: "models",
  },

  "storage.quota": {
    title: "Not enough room",
    text: (details) => {
      const [needed, free] = [number(details.needed), number(details.free)];
      const facts =
        needed === undefined
          ? "The browser grants no more room."
          : `${bytes(needed)} more are needed${free === undefined ? "" : `, and the browser grants ${bytes(free)}`}.`;
      return `${facts} Delete a stored model or free some disk space; what is there already is kept.`;
    },
    step: "models",
  },
  "storage.unavailable": {
    title: "This browser stores nothing here",
    text: "Private windows and some settings forbid it. A model can still be used without keeping it.",
    step: "models",
  },
  "storage.corrupt": {
    title: "The stored file is damaged",
    text: "Its bytes are not what was stored. Check it to repair it, or delete it and download it again.",
    step: "models",
  },
  "storage.missing": { title: "The model is not stored any more", text: "It was deleted, perhaps by the browser. Download it again.", step: "models" },
  "storage.busy": {
    title: "The file is in use",
    text: "Another tab reads or writes it. Close that tab, or wait until it is done.",
    step: "retry",
  },
  "storage.exists": {
    title: "That name is taken",
    text: "Another file of this name is stored, perhaps an older version. It can be replaced by this one, or used as it is from the list of stored models.",
    step: "replace",
  },

  "engine.unloaded": { title: "No model is loaded", text: "Load the model again to go on.", step: "reload" },
  "worker.failed": {
    title: "The engine stopped",
    text: "The browser ended it, most likely for want of memory. Load the model again; the conversation is safe.",
    step: "reload",
  },
  internal: {
    title: "Something went wrong in the engine",
    text: "That is a mistake of ours. Loading the model again usually helps; the conversation is safe.",
    step: "reload",
  },
  "report.refused": {
    title: "The server did not take it",
    text: (details) => `Its log said: ${typeof details.reason === "string" ? details.reason : "nothing"}.`,
    step: "none",
  },
  "import.invalid": {
    title: "Nothing to import",
    text: "The file is not an export of conversations from this app.",
    step: "none",
  },
};

const UNKNOWN: Told = {
  title: "That did not work",
  text: "Something failed that we have no better words for. Trying again may help.",
  step: "retry",
};

/** An error that is about to be shown: anything with a code, or anything at all. */
export function explain(thrown: unknown): Explanation {
  const error = (thrown ?? {}) as { code?: unknown; message?: unknown; details?: unknown; name?: unknown };
  const code = typeof error.code === "string" && error.code !== "" ? error.code : error.name === "AbortError" ? "cancelled" : "unknown";
  const family = code.split(".")[0] as string;
  const told = own(code) ?? own(family) ?? UNKNOWN;
  const details = (typeof error.details === "object" && error.details !== null ? error.details : {}) as Details;
  return {
    code,
    title: told.title,
    text: typeof told.text === "string" ? told.text : told.text(details),
    step: told.step,
    detail: firstLine(typeof error.message === "string" ? error.message : String(thrown)),
  };
}

/** Every code that has words of its own. For tests. */
export const KNOWN_CODES: readonly string[] = Object.keys(TOLD);

function own(code: string): Told | undefined {
  return Object.hasOwn(TOLD, code) ? TOLD[code] : undefined;
}

/** Some messages bring a stack along in further lines; facts are in the first. */
function firstLine(text: string): string {
  return (text.split("\n")[0] as string).slice(0, 400);
}
