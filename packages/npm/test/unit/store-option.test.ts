// How the option `store` of an engine is read.

import { expect, test } from "vitest";

import type { SentSource } from "../../src/protocol.js";
import { describeStore } from "../../src/source/open.js";

const ONE: SentSource[] = [{ kind: "url", url: "https://example.org/model.gguf" }];
const TWO: SentSource[] = [1, 2].map((part) => ({ kind: "url", url: `https://example.org/m-0000${part}-of-00002.gguf` }));
const DIGEST = "0".repeat(64);

test("it keeps what was said, and nothing else", () => {
  expect(describeStore(undefined, ONE)).toBeUndefined();
  expect(describeStore(false, ONE)).toBeUndefined();
  expect(describeStore(true, TWO)).toEqual({});
  expect(describeStore({ name: "m", sha256: DIGEST, replace: true }, ONE)).toEqual({ name: "m", sha256: DIGEST, replace: true });
  expect(describeStore({ replace: true }, TWO)).toEqual({ replace: true });
});

test.each([
  ["a digest for a model of several files", { sha256: DIGEST }, TWO, "option.wrong_type"],
  ["a name for a model of several files", { name: "m" }, TWO, "option.wrong_type"],
  ["what is no object", "yes", ONE, "option.wrong_type"],
  ["what does not exist", { sha512: DIGEST }, ONE, "option.unknown"],
])("%s is refused", (_, store, sources, code) => {
  expect(() => describeStore(store as never, sources)).toThrow(expect.objectContaining({ code }));
});
