// Checks of arguments, for programs without types: they get an error at once for mistakes that types would catch.

import { RullamaError } from "./errors.js";
import { isWithin, type OptionRange } from "./ranges.js";

/** The values that an option accepts: in words, and as a test. */
export interface Expected {
  words: string;
  is: (value: unknown) => boolean;
}

export const yesOrNo: Expected = { words: "true or false", is: (value) => typeof value === "boolean" };

/** A number in a range of the engine's table. */
export function within(range: OptionRange): Expected {
  return { words: range.words, is: (value) => isWithin(range, value) };
}

export const callable: Expected = { words: "a function", is: (value) => typeof value === "function" };

export const anyObject: Expected = { words: "an object", is: (value) => typeof value === "object" && value !== null };

/** The option `worker`. */
export const runningPlace: Expected = {
  words: 'true, false, "blob" or a Worker',
  is: (value) => typeof value === "boolean" || value === "blob" || anyObject.is(value),
};

/** One file of a model. */
export const anySource: Expected = {
  words: "a URL, File, Blob or another source of a file",
  is: (value) => typeof value === "string" || anyObject.is(value),
};

/** The option `wasm`. */
export const wasmLocation: Expected = {
  words: "a URL or a WebAssembly.Module",
  is: (value) => typeof value === "string" || anyObject.is(value),
};

export function oneOf(...values: string[]): Expected {
  return { words: values.map((value) => `"${value}"`).join(" or "), is: (value) => values.includes(value as string) };
}

export function either(...ways: Expected[]): Expected {
  return { words: ways.map(({ words }) => words).join(" or "), is: (value) => ways.some(({ is }) => is(value)) };
}

/** The options, or none for null. An unknown option is an error: a misspelt one would otherwise be ignored silently. */
export function checkedOptions<T extends object>(options: T | null | undefined, known: Record<string, Expected>): T {
  const given = optionsObject(options);
  for (const [name, value] of Object.entries(given)) {
    const expected = Object.hasOwn(known, name) ? known[name] : undefined;
    if (!expected) {
      throw new RullamaError("option.unknown", `Option \`${name}\` does not exist. The options are ${Object.keys(known).join(", ")}.`);
    }
    checkOption(name, value, expected);
  }
  return given;
}

/** Refuses an option that has another value. */
export function checkOption(name: string, value: unknown, expected: Expected): void {
  if (value !== undefined && !expected.is(value)) {
    const code = typeof value === "number" && expected.words.includes("number") ? "option.out_of_range" : "option.wrong_type";
    throw new RullamaError(code, `Option \`${name}\` is ${shown(value)}. It must be ${expected.words}.`);
  }
}

/** Options whose names and values are checked later. */
export function optionsObject<T extends object>(options: T | null | undefined): T {
  const given = options ?? ({} as T);
  if (typeof given !== "object") {
    throw new RullamaError("option.wrong_type", `The options are ${shown(given)}. They must be an object.`);
  }
  return given;
}

export function checkedText(text: string): string {
  if (typeof text !== "string") {
    throw new RullamaError("option.wrong_type", `The text is ${shown(text)}. It must be a string.`);
  }
  return text;
}

/** Token ids. */
export function checkedIds(ids: readonly number[] | Uint32Array): Uint32Array {
  if (ids instanceof Uint32Array) {
    return ids;
  }
  const fits = (id: unknown) => Number.isInteger(id) && (id as number) >= 0 && (id as number) < 2 ** 32;
  if (!Array.isArray(ids) || !ids.every(fits)) {
    throw new RullamaError("option.wrong_type", `The tokens are ${shown(ids)}. They must be a list of token ids.`);
  }
  return Uint32Array.from(ids);
}

/** A value as text, short enough for a message. */
function shown(value: unknown): string {
  const text = typeof value === "string" ? JSON.stringify(value) : String(Array.isArray(value) ? `[${value.join(", ")}]` : value);
  return text.length > 60 ? `${text.slice(0, 60)}…` : text;
}
