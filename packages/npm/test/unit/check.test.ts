// What callers give, looked at.

import { expect, test } from "vitest";

import { RANGES } from "../../src/ranges.js";
import { checkedIds, checkedOptions, checkedText, either, oneOf, optionsObject, within, yesOrNo } from "../../src/check.js";
import { checkOptionNames } from "../../src/names.js";

const KNOWN = { context: within(RANGES.context), kv: oneOf("f16", "q8"), store: either(yesOrNo, oneOf("all")) };

function code(work: () => unknown): unknown {
  try {
    work();
  } catch (error) {
    return (error as { code: unknown }).code;
  }
  return undefined;
}

test("options are what they are called, or are refused by name", () => {
  const given = { context: 5, kv: "q8", store: true };
  expect(checkedOptions(given, KNOWN)).toBe(given);
  expect(checkedOptions(null, KNOWN)).toEqual({});
  expect(checkedOptions({ context: undefined }, KNOWN)).toEqual({ context: undefined });
  expect(() => checkedOptions({ context: "5" }, KNOWN)).toThrow('Option `context` is "5". It must be a whole number from 1 to 4294967295.');
  expect(code(() => checkedOptions({ context: 0 }, KNOWN))).toBe("option.out_of_range");
  expect(code(() => checkedOptions({ context: "5" }, KNOWN))).toBe("option.wrong_type");
  expect(code(() => checkedOptions({ kv: "q4" }, KNOWN))).toBe("option.wrong_type");
  expect(code(() => checkedOptions({ store: null }, KNOWN))).toBe("option.wrong_type");
  expect(code(() => checkedOptions({ contxt: 5 }, KNOWN))).toBe("option.unknown");
  expect(code(() => checkedOptions({ toString: 5 }, KNOWN))).toBe("option.unknown");
  expect(code(() => optionsObject("text" as never))).toBe("option.wrong_type");
});

test("texts and tokens are nothing else", () => {
  expect(checkedText("a")).toBe("a");
  expect(checkedIds([1, 2])).toEqual(Uint32Array.of(1, 2));
  for (const nonsense of [5, undefined, null, {}]) {
    expect(code(() => checkedText(nonsense as never))).toBe("option.wrong_type");
    expect(code(() => checkedIds(nonsense as never))).toBe("option.wrong_type");
  }
  for (const nonsense of ["abc", [1.5], [-1], [2 ** 32], ["1"]]) {
    expect(code(() => checkedIds(nonsense as never))).toBe("option.wrong_type");
  }
});

test("sampling options of the earlier API that do not exist are refused at once", () => {
  const known = { topK: 1, top_k: 1, temperature: 0, seed: 1, stop: "a", repeatPenalty: 1, maxTokens: 5 };
  expect(() => checkOptionNames(known)).not.toThrow();
  expect(() => checkOptionNames({ topk: 1 })).toThrow(expect.objectContaining({ code: "option.unknown" }));
});
