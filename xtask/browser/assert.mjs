// Assertions of the browser tests.

import { setTimeout as sleep } from "node:timers/promises";
import { SOON } from "./page.mjs";

export function assert(condition, message) {
  if (!condition) {
    throw new Error(message);
  }
}

export function equal(found, expected, what = "value") {
  const [a, b] = [JSON.stringify(found), JSON.stringify(expected)];
  assert(a === b, `${what}: ${a} was found; ${b} was expected`);
}

/** Repeats assertions until they hold. */
export async function eventually(body) {
  for (const end = Date.now() + SOON; ; await sleep(30)) {
    try {
      return await body();
    } catch (error) {
      if (Date.now() > end) {
        throw error;
      }
    }
  }
}
