// The hash against the standard's vectors, against Node's, and against itself after stopping anywhere.

import { describe, expect, test } from "vitest";
import { Sha256 } from "../../src/store/sha256.js";
import { digest, noise } from "./fake-server.js";

const text = (string: string) => new TextEncoder().encode(string);

describe("SHA-256", () => {
  test.each([
    ["", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"],
    ["abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"],
    ["abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"],
    ["a".repeat(1_000_000), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"],
  ])("vector %#", (input, expected) => {
    expect(new Sha256().update(text(input)).hex()).toBe(expected);
  });

  test("every length around a block agrees with Node", () => {
    for (let length = 0; length <= 200; length++) {
      const bytes = noise(length, length + 1);
      expect(new Sha256().update(bytes).hex()).toBe(digest(bytes));
    }
  });

  test("pieces of any size give the same digest, and asking for it changes nothing", () => {
    const bytes = noise(10_000);
    for (const size of [1, 7, 63, 64, 65, 1000]) {
      const hash = new Sha256();
      for (let at = 0; at < bytes.length; at += size) {
        hash.update(bytes.subarray(at, at + size));
        hash.hex();
      }
      expect(hash.hex()).toBe(digest(bytes));
    }
  });

  test("goes on from its state at any byte", () => {
    const bytes = noise(300);
    for (let cut = 0; cut <= bytes.length; cut++) {
      const state = new Sha256().update(bytes.subarray(0, cut)).state();
      expect(Sha256.resume(state, cut).update(bytes.subarray(cut)).hex()).toBe(digest(bytes));
    }
  });

  test("lengths beyond 512 MiB reach the upper word", () => {
    // The state alone carries the length, so no such input is needed: both count from the same state.
    const zero = new Sha256().state();
    const below = Sha256.resume(zero, 2 ** 29).hex();
    const above = Sha256.resume(zero, 2 ** 30).hex();
    expect(below).not.toBe(above);
    expect(below).not.toBe(new Sha256().hex());
  });

  test("refuses what is not a state", () => {
    expect(() => Sha256.resume("00", 0)).toThrow(TypeError);
    expect(() => Sha256.resume(new Sha256().state(), 5)).toThrow(TypeError);
  });
});
