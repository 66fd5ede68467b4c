// The user's settings for replies and loading, kept in this browser.

import type { ImageBudget } from "rullama";
import { BUDGETS, DEFAULT_BUDGET } from "../chat/soft-tokens";

/** What computes: `auto` is the GPU if it can be relied on, otherwise the CPU. */
export type BackendSetting = "auto" | "gpu" | "cpu";

/** The choices, as they are shown. */
export const BACKENDS: readonly [BackendSetting, string][] = [
  ["auto", "Automatic"],
  ["gpu", "GPU"],
  ["cpu", "CPU"],
];

export interface Settings {
  temperature: number;
  topK: number;
  topP: number;
  minP: number;
  repeatPenalty: number;
  /** Null picks a new seed for each reply. */
  seed: number | null;
  /** Null sets no limit but the context. */
  maxTokens: number | null;
  think: boolean;
  /** The tokens that each image may take. */
  imageBudget: ImageBudget;
  /** Context size in tokens, applied when a model is loaded. Null lets the engine choose for the device. */
  context: number | null;
  /** Applied when a model is loaded. */
  backend: BackendSetting;
  /** The system prompt of new chats. */
  system: string;
  /** Whether errors are reported to the server that the page came from. */
  report: boolean;
}

/** Version 1 stored a context of 4096 even if the user had not chosen it. */
export const SETTINGS_VERSION = 2;
const FORMER_CONTEXT = 4096;

export interface NumberField {
  name: "temperature" | "topK" | "topP" | "minP" | "repeatPenalty" | "seed" | "maxTokens" | "context";
  label: string;
  help: string;
  least: number;
  most: number;
  step: number;
  whole: boolean;
  /** What an empty field means, if it may be empty. */
  empty?: string;
  /** Values up to this one mean the same as an empty field. */
  none?: number;
  /** Where the arrow keys start in an empty field; `least` by default. */
  start?: number;
}

export const DEFAULTS: Settings = {
  temperature: 1,
  topK: 64,
  topP: 0.95,
  minP: 0,
  repeatPenalty: 1,
  seed: null,
  maxTokens: null,
  think: true,
  imageBudget: DEFAULT_BUDGET,
  context: null,
  backend: "auto",
  system: "",
  report: false,
};

/** All number fields, in the order they are shown. */
export const FIELDS: readonly NumberField[] = [
  { name: "temperature", label: "Temperature", help: "0 always picks the most likely token. Higher values give more varied replies.", least: 0, most: 2, step: 0.05, whole: false },
  { name: "topK", label: "Top-k", help: "Samples from this many of the most likely tokens. 0 turns it off.", least: 0, most: 1000, step: 1, whole: true },
  { name: "topP", label: "Top-p", help: "Samples from the most likely tokens whose probabilities add up to this. 1 turns it off.", least: 0, most: 1, step: 0.01, whole: false },
  { name: "minP", label: "Min-p", help: "Drops tokens less likely than this fraction of the most likely one. 0 turns it off.", least: 0, most: 1, step: 0.01, whole: false },
  { name: "repeatPenalty", label: "Repeat penalty", help: "Values above 1 make repetition less likely.", least: 0.5, most: 2, step: 0.05, whole: false },
  { name: "seed", label: "Seed", help: "The same seed and prompt give the same reply.", least: 0, most: 4294967295, step: 1, whole: true, empty: "random", none: -1 },
  { name: "maxTokens", label: "Maximum reply length", help: "In tokens. A token is about three quarters of a word.", least: 1, most: 131072, step: 1, whole: true, empty: "no limit", none: 0 },
  { name: "context", label: "Context size", help: "How many tokens the model can take into account. More needs more memory.", least: 256, most: 262144, step: 256, whole: true, empty: "automatic", none: 0, start: 4096 },
];

/** The typed number, moved into the field's range. Undefined if it isn't a number; null if the field is empty and may be. */
export function readNumber(field: NumberField, typed: string): number | null | undefined {
  const text = typed.trim().replace(",", ".");
  if (text === "") {
    return field.empty === undefined ? undefined : null;
  }
  const value = Number(text);
  if (!Number.isFinite(value)) {
    return undefined;
  }
  if (field.none !== undefined && value <= field.none) {
    return null;
  }
  const fitting = Math.min(field.most, Math.max(field.least, value));
  return field.whole ? Math.round(fitting) : fitting;
}

/** Why the typed value was changed or refused; undefined if it was accepted as it is. */
export function correction(field: NumberField, typed: string): string | undefined {
  const text = typed.trim().replace(",", ".");
  const value = Number(text);
  const range = `from ${field.least} to ${field.most}`;
  if (readNumber(field, typed) === null) {
    return undefined;
  }
  if (text === "" || !Number.isFinite(value)) {
    return `Enter a number ${range}.`;
  }
  if (value < field.least || value > field.most) {
    return `Must be ${range}.`;
  }
  return field.whole && !Number.isInteger(value) ? "Must be a whole number." : undefined;
}

/** The stored form of settings. */
export function storedSettings(settings: Readonly<Settings>): object {
  return { version: SETTINGS_VERSION, ...settings };
}

/** Settings from their stored form, of any version. */
export function restoreSettings(stored: unknown): Settings {
  const settings = readSettings(stored);
  const { version } = (stored ?? {}) as { version?: unknown };
  if (version === undefined && settings.context === FORMER_CONTEXT) {
    settings.context = null;
  }
  return settings;
}

/** Settings from untrusted values; missing and invalid ones get their defaults. */
export function readSettings(stored: unknown): Settings {
  const settings = { ...DEFAULTS };
  if (typeof stored !== "object" || stored === null) {
    return settings;
  }
  const given = stored as Record<string, unknown>;
  for (const field of FIELDS) {
    const value = given[field.name];
    if (value === null && field.empty !== undefined) {
      (settings[field.name] as number | null) = null;
    } else if (typeof value === "number") {
      (settings[field.name] as number | null) = readNumber(field, String(value)) ?? DEFAULTS[field.name];
    }
  }
  for (const name of ["think", "report"] as const) {
    const value = given[name];
    if (typeof value === "boolean") {
      settings[name] = value;
    }
  }
  const backend = BACKENDS.find(([name]) => name === given.backend)?.[0];
  if (backend) {
    settings.backend = backend;
  }
  settings.imageBudget = BUDGETS.find((budget) => budget === given.imageBudget) ?? settings.imageBudget;
  if (typeof given.system === "string") {
    settings.system = given.system;
  }
  return settings;
}
