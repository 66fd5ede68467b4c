// A model's answer as it is written.

import { RullamaError } from "./errors.js";
import type { Delta, ReplyResult } from "./types.js";

/** Begins a reply: tells deltas as they come, ends when the signal is aborted, gives the whole. */
export type Begin = (onDelta: (delta: Delta) => void, signal: AbortSignal) => Promise<ReplyResult>;

/**
 * A reply: an async iterator of deltas, each of which comes once. Leaving the loop ends the reply, and so does the signal
 * of its options. {@link result} waits for the whole.
 */
export class Reply implements AsyncIterableIterator<Delta> {
  readonly #deltas: Delta[] = [];
  readonly #controller = new AbortController();
  readonly #result: Promise<ReplyResult>;
  #waiting: (() => void)[] = [];
  #over = false;
  #left = false;

  constructor(begin: Begin, signal?: AbortSignal) {
    const abort = () => this.#controller.abort(signal?.reason);
    if (signal?.aborted) {
      abort();
    }
    signal?.addEventListener("abort", abort);
    const onDelta = (delta: Delta) => {
      this.#deltas.push(delta);
      this.#wake();
    };
    this.#result = begin(onDelta, this.#controller.signal).finally(() => {
      signal?.removeEventListener("abort", abort);
      this.#over = true;
      this.#wake();
    });
    // A failure is told to whoever reads on; if nobody does, nobody misses it.
    this.#result.catch(() => {});
  }

  async next(): Promise<IteratorResult<Delta, undefined>> {
    for (;;) {
      if (this.#left) {
        return { done: true, value: undefined };
      }
      const delta = this.#deltas.shift();
      if (delta) {
        return { done: false, value: delta };
      }
      if (this.#over) {
        await this.#result;
        return { done: true, value: undefined };
      }
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    }
  }

  async return(): Promise<IteratorResult<Delta, undefined>> {
    this.cancel();
    return { done: true, value: undefined };
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  /** Ends the reply. What it had said stays said; {@link result} fails with the code `cancelled`. */
  cancel(): void {
    this.#left = true;
    this.#controller.abort(RullamaError.cancelled());
    this.#wake();
  }

  /** The whole reply, when it is complete. */
  result(): Promise<ReplyResult> {
    return this.#result;
  }

  #wake(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    waiting.forEach((resolve) => resolve());
  }
}
