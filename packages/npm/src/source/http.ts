// A file on a server, read by HTTP Range requests.
//
// Connections break during downloads of gigabytes, so a read that breaks is continued where it stopped, after a pause that doubles
// each time. Errors that a retry cannot fix are reported at once: a server that ignores ranges, a range other than the requested one,
// a file that changed. A server that has never answered is given up within seconds, and one that sends only a few bytes a minute as well.

import { RullamaError } from "../errors.js";
import { bytesSource, checkRange } from "./memory.js";
import { FIRST_ATTEMPTS, FIRST_SILENCE, unreachable } from "./reach.js";
import type { ByteSource } from "./types.js";
import { contentRange, count, discard, isPassing, isStrong, Pace, totalOf, Watch } from "./wire.js";

export interface HttpOptions {
  /** Cancels all requests. */
  signal?: AbortSignal;
  /** Called with the number of bytes of each chunk that arrives. */
  onBytes?: (count: number) => void;
  /** Headers of every request, such as `Authorization`. */
  headers?: Record<string, string>;
  /** Replaces `fetch` in tests. */
  fetch?: typeof fetch;
  /** Milliseconds before the first retry; each further pause is twice as long. */
  firstPause?: number;
  /** A connection without data for this many milliseconds counts as broken. */
  silence?: number;
  /** The minimum number of bytes in each window of a read. Pauses between its requests count, too. */
  leastBytes?: number;
  /** Length of a window in milliseconds. */
  window?: number;
  /** The largest file that is read as a whole from a server that ignores ranges. */
  largestWhole?: number;
}

/** A read is given up after this many failures in a row without a byte in between. */
const ATTEMPTS = 5;
const FIRST_PAUSE = 250;
const SILENCE = 30_000;
const LEAST_BYTES = 64 << 10;
const WINDOW = 60_000;
const LARGEST_WHOLE = 64 << 20;

/** Opens a file: requests its first bytes, takes its length from the response, and then reads ranges as they are needed. */
export async function httpSource(url: string, options: HttpOptions = {}): Promise<ByteSource> {
  const server = new Server(url, options);
  const opened = await server.open();
  if (opened.whole) {
    return bytesSource(opened.whole, url);
  }
  const source: ByteSource = {
    name: url,
    length: opened.length,
    async read(offset, length) {
      checkRange(source, offset, length);
      return server.read(offset, length, opened.length);
    },
  };
  return source;
}

/** The version of a file as the server states it. */
interface Version {
  /** A strong tag: it changes with every byte. */
  strong?: string;
  /** A weak tag: two versions may share it. */
  weak?: string;
  modified?: string;
}

function versionOf(headers: Headers): Version {
  const etag = headers.get("etag");
  const modified = headers.get("last-modified");
  return { ...(etag ? (isStrong(etag) ? { strong: etag } : { weak: etag }) : {}), ...(modified ? { modified } : {}) };
}

/**
 * How two responses show that the file was replaced: by the best evidence that both have. Dates count only without strong tags, because
 * mirrors have their own dates. Weak tags count only if no response has anything better.
 */
function difference(first: Version | undefined, now: Version): string | undefined {
  const other = (what: string, before: string, after: string) => (before === after ? undefined : `its ${what} was ${before} and is now ${after}`);
  if (first?.strong && now.strong) {
    return other("ETag", first.strong, now.strong);
  }
  if (first?.modified && now.modified) {
    return other("date", first.modified, now.modified);
  }
  return first?.weak && now.weak && !first.modified && !now.modified ? other("ETag", first.weak, now.weak) : undefined;
}

/** An error that a retry may fix. */
class Passing extends Error {}

/** No response at all. */
class Unanswered extends Passing {
  /** Whether the server stayed silent, so that a retry would take as long again. */
  readonly silent: boolean;

  constructor(message: string, silent: boolean) {
    super(message);
    this.silent = silent;
  }
}

interface Opened {
  length: number;
  /** The whole file, if it is small and its server ignores ranges. */
  whole?: Uint8Array;
}

/** A buffer that is being filled, and how many of its bytes have arrived. */
interface Filling {
  readonly bytes: Uint8Array;
  done: number;
}

class Server {
  readonly #url: string;
  readonly #options: HttpOptions;
  /** The version in the first response. */
  #version: Version | undefined;
  /** Whether the server has answered any request. */
  #answered = false;

  constructor(url: string, options: HttpOptions) {
    this.#url = url;
    this.#options = options;
  }

  /** The file's length; also the whole file if it is small and its server ignores ranges. */
  async open(): Promise<Opened> {
    const retries = new Retries(this.#url, this.#options);
    for (;;) {
      const watch = this.#watch();
      try {
        return await this.#openOnce(watch);
      } catch (error) {
        await retries.pause(error, this.#answered);
      } finally {
        watch.stop();
      }
    }
  }

  async #openOnce(watch: Watch): Promise<Opened> {
    // Two bytes: some servers treat a range that ends at 0 as one without an end.
    const response = await this.#request("GET", watch, { range: "bytes=0-1" });
    if (response.status === 200) {
      return this.#whole(response, watch);
    }
    await discard(response);
    this.#version = versionOf(response.headers);
    const range = contentRange(response.headers);
    const total = totalOf(response.headers) ?? (await this.#head(watch));
    if (response.status === 416) {
      // An empty file has no first byte.
      return { length: total ?? 0 };
    }
    if (total === undefined || (range?.first ?? 0) !== 0) {
      throw this.#wrongRange(response, "bytes 0-1/LENGTH");
    }
    return { length: total };
  }

  /** The length from a HEAD request, for a server that does not expose `Content-Range` to other origins. */
  async #head(watch: Watch): Promise<number | undefined> {
    const response = await this.#request("HEAD", watch);
    return response.ok ? count(response.headers.get("content-length")) : undefined;
  }

  async #whole(response: Response, watch: Watch): Promise<Opened> {
    const limit = this.#options.largestWhole ?? LARGEST_WHOLE;
    const announced = count(response.headers.get("content-length"));
    const ignored = () =>
      new RullamaError(
        "source.range_ignored",
        `The server of \`${this.#url}\` does not support Range requests (it answered 200 instead of 206), and the file is too large to be read as a whole.`,
      );
    if (announced !== undefined && announced > limit) {
      await discard(response);
      throw ignored();
    }
    const parts: Uint8Array[] = [];
    let length = 0;
    for await (const chunk of this.#chunks(response, watch, this.#pace())) {
      parts.push(chunk);
      length += chunk.byteLength;
      if (length > limit) {
        throw ignored();
      }
    }
    // Fewer bytes than announced mean a broken connection. More can be a compressed response, which is complete.
    if (announced !== undefined && length < announced) {
      throw new Passing(`the response ended after ${length} of ${announced} bytes`);
    }
    const whole = new Uint8Array(length);
    let at = 0;
    for (const part of parts) {
      whole.set(part, at);
      at += part.byteLength;
    }
    return { length, whole };
  }

  /** Reads exactly these bytes. */
  async read(offset: number, length: number, total: number): Promise<Uint8Array> {
    const filling: Filling = { bytes: new Uint8Array(length), done: 0 };
    let retries = new Retries(this.#url, this.#options);
    const pace = this.#pace();
    while (filling.done < length) {
      const before = filling.done;
      try {
        await this.#readInto(filling, offset, total, pace);
      } catch (error) {
        const progress = filling.done > before;
        if (progress) {
          retries = new Retries(this.#url, this.#options);
        }
        await retries.pause(error, this.#answered);
        if (!progress) {
          pace.start();
        }
      }
    }
    return filling.bytes;
  }

  /** Fills the buffer with the bytes of one response, or with those that arrive before it breaks. */
  async #readInto(filling: Filling, offset: number, total: number, pace: Pace): Promise<void> {
    const { bytes, done } = filling;
    const first = offset + done;
    const last = offset + bytes.byteLength - 1;
    const watch = this.#watch();
    try {
      const response = await this.#request("GET", watch, { range: `bytes=${first}-${last}` });
      const expected = `bytes ${first}-${last}/${total}`;
      if (response.status === 200) {
        await discard(response);
        const message = `The server of \`${this.#url}\` does not support Range requests (it answered 200 instead of 206).`;
        throw new RullamaError("source.range_ignored", message);
      }
      const range = contentRange(response.headers);
      const found = totalOf(response.headers);
      if (found !== undefined && found !== total) {
        await discard(response);
        throw this.#changed(`it had ${total} bytes and now has ${found}`);
      }
      const other = difference(this.#version, versionOf(response.headers));
      if (other) {
        await discard(response);
        throw this.#changed(other);
      }
      // A server may send less than was requested, but not other bytes.
      const wrong = range && (range.first !== first || range.last === undefined || range.last > last);
      if (response.status !== 206 || wrong) {
        throw this.#wrongRange(response, expected);
      }
      for await (const chunk of this.#chunks(response, watch, pace)) {
        if (filling.done + chunk.byteLength > bytes.byteLength) {
          throw this.#wrongRange(response, `${expected} and no more`);
        }
        bytes.set(chunk, filling.done);
        filling.done += chunk.byteLength;
      }
      if (filling.done === done) {
        throw new Passing("the response was empty");
      }
    } finally {
      watch.stop();
    }
  }

  /** Sends one request. Throws `Passing` if a retry may help, and a final error otherwise. */
  async #request(method: string, watch: Watch, headers: Record<string, string> = {}): Promise<Response> {
    const send = this.#options.fetch ?? fetch;
    let response: Response;
    try {
      response = await send(this.#url, {
        method,
        headers: { ...this.#options.headers, ...headers },
        signal: watch.signal,
        // The browser's cache would keep gigabytes that are read once.
        cache: "no-store",
      });
    } catch (error) {
      const broken = this.#broken(error);
      throw broken instanceof Passing ? new Unanswered(broken.message, watch.silent !== undefined) : broken;
    }
    this.#answered = true;
    if (isPassing(response.status)) {
      await discard(response);
      throw new Passing(`HTTP status ${response.status}`);
    }
    if (!response.ok && response.status !== 416) {
      await discard(response);
      const { status } = response;
      throw new RullamaError("source.status", statusMessage(this.#url, status), { details: { status } });
    }
    return response;
  }

  async *#chunks(response: Response, watch: Watch, pace: Pace): AsyncGenerator<Uint8Array> {
    const reader = response.body?.getReader();
    if (!reader) {
      return;
    }
    let some = false;
    try {
      for (;;) {
        const { done, value } = await reader.read();
        if (done) {
          return;
        }
        watch.alive();
        this.#options.onBytes?.(value.byteLength);
        yield value;
        some = true;
        this.#check(pace.add(value.byteLength));
      }
    } catch (error) {
      // Otherwise a server that sends one byte before each failure would be retried forever.
      if (some) {
        this.#check(pace.add(0));
      }
      throw this.#broken(error);
    } finally {
      // A reader that is already closed cannot be cancelled, which is fine.
      await reader.cancel().catch(() => {});
    }
  }

  /** The error of a broken connection, or of a cancelled one. */
  #broken(error: unknown): Error {
    if (error instanceof RullamaError || error instanceof Passing) {
      return error;
    }
    if (this.#options.signal?.aborted) {
      return RullamaError.cancelled(this.#options.signal.reason);
    }
    return new Passing(error instanceof Error ? error.message : String(error));
  }

  #pace(): Pace {
    const { leastBytes = LEAST_BYTES, window = WINDOW, silence = SILENCE } = this.#options;
    return new Pace(leastBytes, window, silence);
  }

  /** Throws if the server was found to be too slow. */
  #check(slow: string | undefined): void {
    if (slow) {
      throw new RullamaError("source.too_slow", `The server of \`${this.#url}\` is too slow: ${slow}.`);
    }
  }

  #watch(): Watch {
    const { silence = SILENCE, signal } = this.#options;
    return new Watch(this.#answered ? silence : Math.min(silence, FIRST_SILENCE), signal);
  }

  #changed(how: string): RullamaError {
    return new RullamaError("source.changed", `\`${this.#url}\` changed while it was being read: ${how}.`);
  }

  #wrongRange(response: Response, expected: string): RullamaError {
    const found = response.headers.get("content-range") ?? "";
    const message = `The server of \`${this.#url}\` sent Content-Range \`${found}\` instead of \`${expected}\`.`;
    return new RullamaError("source.content_range", message);
  }
}

/** Counts the failures of one read, waits between them, and gives up in the end. */
class Retries {
  readonly #url: string;
  readonly #options: HttpOptions;
  #attempts = 0;

  constructor(url: string, options: HttpOptions) {
    this.#url = url;
    this.#options = options;
  }

  /** Waits before the next attempt, or throws if there is none. `answered` is whether the server has ever answered. */
  async pause(error: unknown, answered: boolean): Promise<void> {
    if (!(error instanceof Passing)) {
      throw error;
    }
    this.#attempts += 1;
    const { signal, firstPause = FIRST_PAUSE, fetch: send } = this.#options;
    if (error instanceof Unanswered && !answered && (error.silent || this.#attempts >= FIRST_ATTEMPTS)) {
      throw new RullamaError("source.connection", await unreachable(this.#url, error.message, send));
    }
    if (this.#attempts === ATTEMPTS) {
      const message = `\`${this.#url}\` could not be read in ${ATTEMPTS} attempts: ${error.message}.`;
      throw new RullamaError("source.connection", message);
    }
    await new Promise<void>((resolve) => {
      const end = () => {
        clearTimeout(timer);
        signal?.removeEventListener("abort", end);
        resolve();
      };
      const timer = setTimeout(end, firstPause * 2 ** (this.#attempts - 1));
      signal?.addEventListener("abort", end);
    });
    if (signal?.aborted) {
      throw RullamaError.cancelled(signal.reason);
    }
  }
}

/** What an HTTP status means for someone who wants to load a model. */
export function statusMessage(url: string, status: number): string {
  const meaning: Record<number, string> = {
    401: "the file needs a login or a token",
    403: "access to the file is not allowed",
    404: "there is no such file",
    410: "there is no such file any more",
  };
  const why = meaning[status] ? `: ${meaning[status]}` : "";
  return `The server answered \`${url}\` with HTTP status ${status}${why}.`;
}
