// A model's reply while it is written.

import { RullamaError } from "./errors.js";
import type { ReplyEvent, Started } from "./protocol.js";
import type { Delta, ReplyResult } from "./types.js";

/** Starts a reply: reports its events, stops when the signal is aborted, and gives the whole reply. */
export type Begin = (onEvent: (event: ReplyEvent) => void, signal: AbortSignal) => Promise<ReplyResult>;

/**
 * A reply: an async iterator of deltas, to be read once.
 *
 * Leaving the loop, or calling {@link cancel}, stops the model; {@link result} then resolves with what was written so far and the
 * finish reason `cancelled`. Aborting the `signal` of the reply's options stops it with an error instead: the loop and `result()`
 * reject with the code `cancelled`.
 */
export class Reply implements AsyncIterableIterator<Delta> {
  readonly #unread: Delta[] = [];
  readonly #written = new Written();
  readonly #controller = new AbortController();
  /** The reason with which {@link cancel} aborts, to tell it from the caller's signal. */
  readonly #left = RullamaError.cancelled();
  readonly #result: Promise<ReplyResult>;
  #waiting: (() => void)[] = [];
  #over = false;

  /** @internal */
  constructor(begin: Begin, signal?: AbortSignal) {
    const abort = () => this.#controller.abort(signal?.reason);
    if (signal?.aborted) {
      abort();
    }
    signal?.addEventListener("abort", abort);
    const onEvent = (event: ReplyEvent) => {
      if ("started" in event) {
        this.#written.start(event.started);
        return;
      }
      this.#written.add(event);
      this.#unread.push(event);
      this.#wake();
    };
    this.#result = begin(onEvent, this.#controller.signal)
      .catch((error: unknown) => {
        if (this.#isLeft && error instanceof RullamaError && error.code === "cancelled") {
          return this.#written.result();
        }
        throw error;
      })
      .finally(() => {
        signal?.removeEventListener("abort", abort);
        this.#over = true;
        this.#wake();
      });
    // The loop and `result()` report an error. Without either, it must not be an unhandled rejection.
    this.#result.catch(() => {});
  }

  async next(): Promise<IteratorResult<Delta, undefined>> {
    for (;;) {
      if (this.#isLeft) {
        return { done: true, value: undefined };
      }
      const delta = this.#unread.shift();
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

  /** Stops the reply. {@link result} then resolves with what was written so far. Does nothing after the end. */
  cancel(): void {
    this.#controller.abort(this.#left);
    this.#wake();
  }

  /**
   * The whole reply, when it is complete; after the loop was left or {@link cancel} was called, the part written so far, with the
   * finish reason `cancelled`.
   */
  result(): Promise<ReplyResult> {
    return this.#result;
  }

  get #isLeft(): boolean {
    return this.#controller.signal.reason === this.#left;
  }

  #wake(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    waiting.forEach((resolve) => resolve());
  }
}

/** What has been written of a reply so far. */
class Written {
  readonly #result: ReplyResult = {
    text: "",
    thought: "",
    toolCalls: [],
    ids: [],
    finishReason: "cancelled",
    seed: -1,
    usage: { promptTokens: 0, reusedTokens: 0, generatedTokens: 0 },
    timings: { promptMs: 0, generateMs: 0 },
  };
  #since: number | undefined;

  start({ seed, promptTokens, reusedTokens, promptMs }: Started): void {
    this.#since = performance.now();
    this.#result.seed = seed;
    this.#result.timings.promptMs = promptMs;
    Object.assign(this.#result.usage, { promptTokens, reusedTokens });
  }

  add({ text, thought, toolCalls, ids, logprobs }: Delta): void {
    const result = this.#result;
    result.text += text;
    result.thought += thought ?? "";
    result.toolCalls.push(...(toolCalls ?? []));
    result.ids.push(...ids);
    if (logprobs) {
      result.logprobs = [...(result.logprobs ?? []), ...logprobs];
    }
    result.usage.generatedTokens = result.ids.length;
  }

  /** The partial reply. */
  result(): ReplyResult {
    this.#result.timings.generateMs = this.#since === undefined ? 0 : performance.now() - this.#since;
    return this.#result;
  }
}
