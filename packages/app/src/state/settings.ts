// What people can set about replies and loading, kept in this browser.

export interface Settings {
  temperature: number;
  topK: number;
  topP: number;
  minP: number;
  repeatPenalty: number;
  /** Null takes another seed each time. */
  seed: number | null;
  /** Null writes as long as there is room. */
  maxTokens: number | null;
  think: boolean;
  /** Tokens a conversation may have; taken when a model is loaded. Null leaves it to the engine, which knows the device. */
  context: number | null;
  /** The system prompt that a new conversation begins with. */
  system: string;
  /** Whether errors go to the server that brought the page. */
  report: boolean;
}

/** Tells what is stored now from what was stored when every conversation had 4096 tokens unless told. */
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
  /** What an empty field means, where it may be empty. */
  empty?: string;
  /** This and less mean the same as nothing, where the field may be empty. */
  none?: number;
  /** Where arrows begin in an empty field; the least unless told. */
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
  context: null,
  system: "",
  report: false,
};

/** The order in which they are shown. */
export const FIELDS: readonly NumberField[] = [
  { name: "temperature", label: "Temperature", help: "0 always takes the likeliest word; higher is more varied.", least: 0, most: 2, step: 0.05, whole: false },
  { name: "topK", label: "Top-k", help: "Chooses among this many of the likeliest; 0 is off.", least: 0, most: 1000, step: 1, whole: true },
  { name: "topP", label: "Top-p", help: "Chooses among the likeliest that add up to this share; 1 is off.", least: 0, most: 1, step: 0.01, whole: false },
  { name: "minP", label: "Min-p", help: "Drops what is less likely than this share of the likeliest; 0 is off.", least: 0, most: 1, step: 0.01, whole: false },
  { name: "repeatPenalty", label: "Repeat penalty", help: "Above 1 makes repetition less likely.", least: 0.5, most: 2, step: 0.05, whole: false },
  { name: "seed", label: "Seed", help: "The same seed gives the same reply.", least: 0, most: 4294967295, step: 1, whole: true, empty: "random", none: -1 },
  { name: "maxTokens", label: "Longest reply", help: "In tokens, about three quarters of a word each.", least: 1, most: 131072, step: 1, whole: true, empty: "no limit", none: 0 },
  { name: "context", label: "Context size", help: "Tokens that the model can keep in mind. More takes more memory.", least: 256, most: 262144, step: 256, whole: true, empty: "automatic", none: 0, start: 4096 },
];

/** A number that fits its field; undefined if there is none in what was typed. Null where empty means something. */
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

/** Why a field does not take what was typed as it is; undefined if it does. */
export function correction(field: NumberField, typed: string): string | undefined {
  const text = typed.trim().replace(",", ".");
  const value = Number(text);
  const range = `from ${field.least} to ${field.most}`;
  if (readNumber(field, typed) === null) {
    return undefined;
  }
  if (text === "" || !Number.isFinite(value)) {
    return `A number ${range}, please.`;
  }
  if (value < field.least || value > field.most) {
    return `It can be ${range}.`;
  }
  return field.whole && !Number.isInteger(value) ? "It can only be whole." : undefined;
}

/** Settings as they are stored. */
export function storedSettings(settings: Readonly<Settings>): object {
  return { version: SETTINGS_VERSION, ...settings };
}

/** Settings from what was stored, by whichever version. A context that nobody chose is no choice. */
export function restoreSettings(stored: unknown): Settings {
  const settings = readSettings(stored);
  const { version } = (stored ?? {}) as { version?: unknown };
  if (version === undefined && settings.context === FORMER_CONTEXT) {
    settings.context = null;
  }
  return settings;
}

/** Settings from their parts, with the default for everything that is missing or makes no sense. */
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
  if (typeof given.system === "string") {
    settings.system = given.system;
  }
  return settings;
}
