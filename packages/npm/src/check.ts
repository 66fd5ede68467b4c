// What callers give, looked at before it goes anywhere: programs without types make mistakes that types would catch.

import { RullamaError } from "./errors.js";
import { isWithin, type OptionRange } from "./ranges.js";

/** What an option must be, in words, and whether a value is. */
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

/** Where an engine runs. */
export const runningPlace: Expected = {
  words: 'true, false, "blob" or a Worker',
  is: (value) => typeof value === "boolean" || value === "blob" || anyObject.is(value),
};

/** Where the wasm file is, or its module. */
export const wasmLocation: Expected = {
  words: "an address or a module",
  is: (value) => typeof value === "string" || anyObject.is(value),
};

export function oneOf(...values: string[]): Expected {
  return { words: values.map((value) => `"${value}"`).join(" or "), is: (value) => values.includes(value as string) };
}

export function either(...ways: Expected[]): Expected {
  return { words: ways.map(({ words }) => words).join(" or "), is: (value) => ways.some(({ is }) => is(value)) };
}

/** Options as they were given; none, where null was. What is misspelt would be ignored silently, and so is refused. */
export function checkedOptions<T extends object>(options: T | null | undefined, known: Record<string, Expected>): T {
  const given = optionsObject(options);
  for (const [name, value] of Object.entries(given)) {
    const expected = Object.hasOwn(known, name) ? known[name] : undefined;
    if (!expected) {
      throw new RullamaError("option.unknown", `option \`${name}\` does not exist`);
    }
    if (value !== undefined && !expected.is(value)) {
      const code = typeof value === "number" && expected.words.includes("number") ? "option.out_of_range" : "option.wrong_type";
      throw new RullamaError(code, `option \`${name}\`: found ${shown(value)}; expected ${expected.words}`);
    }
  }
  return given;
}

/** Options whose names and values the engine checks. */
export function optionsObject<T extends object>(options: T | null | undefined): T {
  const given = options ?? ({} as T);
  if (typeof given !== "object") {
    throw new RullamaError("option.wrong_type", `the options are ${shown(given)}; an object was expected`);
  }
  return given;
}

export function checkedText(text: string): string {
  if (typeof text !== "string") {
    throw new RullamaError("option.wrong_type", `the text is ${shown(text)}; a string was expected`);
  }
  return text;
}

/** The ids of tokens. */
export function checkedIds(ids: readonly number[] | Uint32Array): Uint32Array {
  if (ids instanceof Uint32Array) {
    return ids;
  }
  const fits = (id: unknown) => Number.isInteger(id) && (id as number) >= 0 && (id as number) < 2 ** 32;
  if (!Array.isArray(ids) || !ids.every(fits)) {
    throw new RullamaError("option.wrong_type", `the tokens are ${shown(ids)}; a list of ids was expected`);
  }
  return Uint32Array.from(ids);
}

/** A value for a message, not too long. */
function shown(value: unknown): string {
  const text = typeof value === "string" ? JSON.stringify(value) : String(Array.isArray(value) ? `[${value.join(", ")}]` : value);
  return text.length > 60 ? `${text.slice(0, 60)}…` : text;
}
