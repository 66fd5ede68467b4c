// Counts checks: one line for each, what went wrong beneath it, and the sum at the end.

import { setTimeout as sleep } from "node:timers/promises";

/** Milliseconds for what a page does by itself, on a machine that is busy with other things as well. */
export const SOON = 60_000;

export class Checks {
  passed = 0;
  failed = 0;
  #browser = "";

  /** Runs the checks of one browser, each of which is then said to be in it. What breaks between two of them fails as well. */
  async inBrowser(name, body) {
    this.#browser = `${name}: `;
    try {
      await body();
    } catch (error) {
      await this.check("the walk goes on to its end", () => {
        throw error;
      });
    }
    this.#browser = "";
  }

  /** Runs one check. Throwing fails it; those after it run all the same. */
  async check(title, body) {
    const started = Date.now();
    try {
      await body();
      this.passed += 1;
      console.log(`ok      ${this.#browser}${title} (${((Date.now() - started) / 1000).toFixed(1)} s)`);
    } catch (error) {
      this.failed += 1;
      console.log(`FAILED  ${this.#browser}${title}\n        ${String(error.stack ?? error).replaceAll("\n", "\n        ")}`);
    }
  }

  /** Prints the sum; gives the status to exit with. None at all is a failure as well. */
  finish() {
    console.log(`${this.passed} passed, ${this.failed} failed`);
    return this.failed === 0 && this.passed > 0 ? 0 : 1;
  }
}

export function assert(condition, message) {
  if (!condition) {
    throw new Error(message);
  }
}

export function equal(found, expected, what = "value") {
  const [a, b] = [JSON.stringify(found), JSON.stringify(expected)];
  assert(a === b, `${what}: ${a} was found; ${b} was expected`);
}

/** Runs assertions again until they hold: what they look at comes about in its own time. */
export async function eventually(body) {
  for (const end = Date.now() + SOON; ; await sleep(50)) {
    try {
      return await body();
    } catch (error) {
      if (Date.now() > end) {
        throw error;
      }
    }
  }
}
