// The ranges of numeric options, by the engine's names. They are a copy of the engine's table (`OptionRange` in `crates/engine`):
// a test there compares these lines with it, and prints the correct ones if they differ.
//
// Options are checked here as well as in the engine because JSON has no NaN and no infinities, and because an error should name an
// option as the program wrote it.

import { RullamaError } from "./errors.js";

/** The range of an option, both ends included. */
export interface OptionRange {
  whole: boolean;
  least: number;
  most: number;
  /** The range in words. */
  words: string;
}

export const RANGES = {
  temperature: { whole: false, least: 0.0, most: 3.4028235e38, words: "a finite number, 0 or above" },
  top_p: { whole: false, least: 0.0, most: 1.0, words: "a number from 0 to 1" },
  min_p: { whole: false, least: 0.0, most: 1.0, words: "a number from 0 to 1" },
  typical_p: { whole: false, least: 0.0, most: 1.0, words: "a number from 0 to 1" },
  repeat_penalty: { whole: false, least: Number.MIN_VALUE, most: 3.4028235e38, words: "a finite number above 0" },
  frequency_penalty: { whole: false, least: -3.4028235e38, most: 3.4028235e38, words: "a finite number" },
  presence_penalty: { whole: false, least: -3.4028235e38, most: 3.4028235e38, words: "a finite number" },
  logit_bias: { whole: false, least: -3.4028235e38, most: 3.4028235e38, words: "a finite number" },
  repeat_last_n: { whole: true, least: -1, most: 2147483647, words: "a whole number from -1 to 2147483647" },
  top_k: { whole: true, least: -1, most: 4294967295, words: "a whole number from -1 to 4294967295" },
  seed: { whole: true, least: -9223372036854775808, most: 18446744073709551615, words: "a whole number from -9223372036854775808 to 18446744073709551615" },
  top_logprobs: { whole: true, least: 0, most: 20, words: "a whole number from 0 to 20" },
  num_predict: { whole: true, least: -2, most: 4294967295, words: "a whole number from -2 to 4294967295" },
  max_tokens: { whole: true, least: -2, most: 4294967295, words: "a whole number from -2 to 4294967295" },
  num_ctx: { whole: true, least: 1, most: 4294967295, words: "a whole number from 1 to 4294967295" },
  context: { whole: true, least: 1, most: 4294967295, words: "a whole number from 1 to 4294967295" },
  memory: { whole: true, least: 1, most: 18446744073709551615, words: "a whole number from 1 to 18446744073709551615" },
  rows: { whole: true, least: 1, most: 4294967295, words: "a whole number from 1 to 4294967295" },
} as const satisfies Record<string, OptionRange>;

/** Whether a value is a number in the range. */
export function isWithin({ whole, least, most }: OptionRange, value: unknown): boolean {
  return typeof value === "number" && value >= least && value <= most && (!whole || Number.isInteger(value));
}

/** Refuses a value outside the range. `option` is the name that the program used. Null and undefined stand for the default. */
export function checkNumber(option: string, range: OptionRange, value: unknown): void {
  if (value === undefined || value === null || isWithin(range, value)) {
    return;
  }
  if (typeof value === "number") {
    throw new RullamaError("option.out_of_range", `Option \`${option}\` is ${value}. It must be ${range.words}.`);
  }
  const found = typeof value === "string" ? "a string" : Array.isArray(value) ? "a list" : typeof value === "object" ? "an object" : String(value);
  throw new RullamaError("option.wrong_type", `Option \`${option}\` is ${found}. It must be a ${range.whole ? "whole " : ""}number.`);
}
