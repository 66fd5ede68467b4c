// HTTP details that two readers share: the one that reads ranges as they are needed, and the one that downloads into the store.

/** The range of a response and the length of the whole file, as far as the header states them. */
export interface ContentRange {
  first?: number | undefined;
  last?: number | undefined;
  total?: number | undefined;
}

/** Parses `bytes 0-99/1234`. The range or the total may be `*`. */
export function contentRange(headers: Headers): ContentRange | undefined {
  const found = /^bytes\s+(?:(\d+)-(\d+)|\*)\/(\d+|\*)$/.exec(headers.get("content-range")?.trim() ?? "");
  return found ? { first: count(found[1]), last: count(found[2]), total: count(found[3]) } : undefined;
}

/** The length of the whole file, from `Content-Range`, or from `X-Total-Size` where `Content-Range` is hidden from other origins. */
export function totalOf(headers: Headers): number | undefined {
  return contentRange(headers)?.total ?? count(headers.get("x-total-size"));
}

export function count(text: string | null | undefined): number | undefined {
  return text && /^\d+$/.test(text.trim()) ? Number(text) : undefined;
}

/** A value that changes when the file changes: a strong ETag, otherwise the date, otherwise a weak ETag. */
export function validatorOf(headers: Headers): string | undefined {
  const etag = headers.get("etag") ?? undefined;
  return etag !== undefined && isStrong(etag) ? etag : (headers.get("last-modified") ?? etag);
}

export function isStrong(validator: string): boolean {
  return !validator.startsWith("W/");
}

/** Whether a status means that a retry may succeed. */
export function isPassing(status: number): boolean {
  return status >= 500 || [408, 425, 429].includes(status);
}

/** Drops the rest of a response. An error while doing so does not matter. */
export async function discard(response: { body: ReadableStream<Uint8Array> | null }): Promise<void> {
  await response.body?.cancel().catch(() => {});
}

/**
 * How fast a server sends during one read or download, over all its requests. In each window of time a minimum number of bytes must
 * arrive, so that no server can keep a read waiting forever. The pauses before new attempts count as well: a server that closes the
 * connection after each byte is as slow as one that sends a byte and waits.
 */
export class Pace {
  readonly #least: number;
  readonly #window: number;
  readonly #longestGap: number;
  #since = performance.now();
  #spent = 0;
  #bytes = 0;

  /**
   * At least `least` bytes must arrive in each `window`, in milliseconds. A request that is silent for `silence` milliseconds is ended, so
   * a gap of more than twice that means that the machine slept or the page was frozen: such a gap does not count.
   */
  constructor(least: number, window: number, silence: number) {
    this.#least = least;
    this.#window = window;
    this.#longestGap = 2 * silence;
  }

  /**
   * Starts the clock again: the time since the last call does not count. Used for time that is not the server's fault, and for attempts
   * without a single byte, which are limited by their number.
   */
  start(): void {
    this.#since = performance.now();
  }

  /** Counts bytes that arrived. At the end of a window in which too few arrived, returns a sentence that says so. */
  add(bytes: number): string | undefined {
    const now = performance.now();
    const gap = now - this.#since;
    this.#since = now;
    this.#spent += gap > this.#longestGap ? 0 : gap;
    this.#bytes += bytes;
    if (this.#spent < this.#window) {
      return undefined;
    }
    const [spent, arrived] = [this.#spent, this.#bytes];
    [this.#spent, this.#bytes] = [0, 0];
    const seconds = Math.round(spent / 1000);
    return arrived < this.#least ? `it sent ${arrived} bytes in ${seconds} seconds, and at least ${this.#least} are required` : undefined;
  }
}

/** Aborts a request that has been silent for too long, counted from its start, or that the caller cancels. */
export class Watch {
  readonly #controller = new AbortController();
  readonly #silence: number;
  readonly #outer: AbortSignal | undefined;
  readonly #end = () => this.#controller.abort(this.#outer?.reason);
  #timer: ReturnType<typeof setTimeout> | undefined;
  #silent: Error | undefined;

  constructor(silence: number, outer: AbortSignal | undefined) {
    this.#silence = silence;
    this.#outer = outer;
    outer?.addEventListener("abort", this.#end);
    if (outer?.aborted) {
      this.#end();
    }
    this.alive();
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** The error of a request that was aborted because it was silent. */
  get silent(): Error | undefined {
    return this.#silent;
  }

  alive(): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      this.#silent = new Error(`no data arrived for ${this.#silence / 1000} s`);
      this.#controller.abort(this.#silent);
    }, this.#silence);
  }

  stop(): void {
    clearTimeout(this.#timer);
    this.#outer?.removeEventListener("abort", this.#end);
  }

  /** Stops watching, and aborts the request if it is still running. */
  end(): void {
    this.stop();
    this.#controller.abort();
  }

  /** Waits for `work`, or for the request to be aborted, which some work does not notice. */
  async race<T>(work: Promise<T>): Promise<T> {
    const { signal } = this;
    let ended = () => {};
    const end = new Promise<never>((_, reject) => {
      ended = () => reject(signal.reason);
    });
    signal.addEventListener("abort", ended);
    if (signal.aborted) {
      ended();
    }
    try {
      return await Promise.race([end, work]);
    } finally {
      signal.removeEventListener("abort", ended);
    }
  }
}
