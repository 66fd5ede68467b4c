// What both readers of servers share: the one that reads ranges as they are needed, and the one that fills the store.

/** The range that an answer brings, and the length of the whole file, as far as it says. */
export interface ContentRange {
  first?: number | undefined;
  last?: number | undefined;
  total?: number | undefined;
}

/** Reads `bytes 0-99/1234`; a star may stand for the range or for the total. */
export function contentRange(headers: Headers): ContentRange | undefined {
  const found = /^bytes\s+(?:(\d+)-(\d+)|\*)\/(\d+|\*)$/.exec(headers.get("content-range")?.trim() ?? "");
  return found ? { first: count(found[1]), last: count(found[2]), total: count(found[3]) } : undefined;
}

/** The length of the whole file, by `Content-Range` or by the header that stands in where other origins do not see that. */
export function totalOf(headers: Headers): number | undefined {
  return contentRange(headers)?.total ?? count(headers.get("x-total-size"));
}

export function count(text: string | null | undefined): number | undefined {
  return text && /^\d+$/.test(text.trim()) ? Number(text) : undefined;
}

/** What changes when the file does: its ETag if that is strong, else its date, else a weak ETag. */
export function validatorOf(headers: Headers): string | undefined {
  const etag = headers.get("etag") ?? undefined;
  return etag !== undefined && isStrong(etag) ? etag : (headers.get("last-modified") ?? etag);
}

export function isStrong(validator: string): boolean {
  return !validator.startsWith("W/");
}

/** Whether a server with this status asks to be tried again. */
export function isPassing(status: number): boolean {
  return status >= 500 || [408, 425, 429].includes(status);
}

/** Reads no more of an answer. Whether it came through does not matter then. */
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
    return arrived < this.#least ? `it sent ${arrived} bytes in ${seconds} seconds; at least ${this.#least} were expected` : undefined;
  }
}

/** Ends a request that has been silent for too long, from its first moment on, or that nobody wants any more. */
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

  /** What to say of a request that was ended for its silence. */
  get silent(): Error | undefined {
    return this.#silent;
  }

  alive(): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      this.#silent = new Error(`nothing came for ${this.#silence / 1000} s`);
      this.#controller.abort(this.#silent);
    }, this.#silence);
  }

  stop(): void {
    clearTimeout(this.#timer);
    this.#outer?.removeEventListener("abort", this.#end);
  }

  /** Ends the request, too, if anything of it is left. */
  end(): void {
    this.stop();
    this.#controller.abort();
  }

  /** What `work` gives, unless the request is ended first: some work does not notice. */
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
