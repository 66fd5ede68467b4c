// A file on a server, read by HTTP Range requests.
//
// Downloads of gigabytes meet broken connections, so a read that breaks is continued where it stopped, after a pause that
// doubles each time. What cannot be mended by trying again is said at once: a server that ignores ranges, a range other
// than the one asked for, a file that changed. A server that sends a byte now and then is given up.

import { RullamaError } from "../errors.js";
import { bytesSource, checkRange } from "./memory.js";
import type { ByteSource } from "./types.js";
import { contentRange, count, discard, isPassing, isStrong, Pace, totalOf, Watch } from "./wire.js";

export interface HttpOptions {
  /** Ends what is under way. */
  signal?: AbortSignal;
  /** Told how many bytes have arrived, each time some have. */
  onBytes?: (count: number) => void;
  /** Headers of every request, such as one that names who asks. */
  headers?: Record<string, string>;
  /** What makes requests, for tests. */
  fetch?: typeof fetch;
  /** Milliseconds before the first attempt that follows a failure; each further pause is twice as long. */
  firstPause?: number;
  /** A connection that is silent for so many milliseconds counts as broken. */
  silence?: number;
  /** The fewest bytes that must arrive in each window of a read. Pauses between its requests count, too. */
  leastBytes?: number;
  /** Milliseconds of such a window. */
  window?: number;
  /** The largest file that is read whole from a server that ignores ranges. */
  largestWhole?: number;
}

/** How often one read may break without any byte arriving in between before it is given up. */
const ATTEMPTS = 5;
const FIRST_PAUSE = 250;
const SILENCE = 30_000;
const LEAST_BYTES = 64 << 10;
const WINDOW = 60_000;
const LARGEST_WHOLE = 64 << 20;

/** Asks the server for the first bytes, learns the length of the file from its answer, and reads ranges from then on. */
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

/** What a server says of a file's version. */
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
 * How two answers show that the file was replaced: by the best evidence that both have. Dates count only without strong tags, because
 * mirrors have their own dates. Weak tags count only where no answer has anything better.
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

/** What trying again may mend. */
class Passing extends Error {}

interface Opened {
  length: number;
  /** All bytes, of a small file on a server that ignores ranges. */
  whole?: Uint8Array;
}

/** Bytes that are being read, and how many of them have arrived. */
interface Filling {
  readonly bytes: Uint8Array;
  done: number;
}

class Server {
  readonly #url: string;
  readonly #options: HttpOptions;
  /** What the first answer said of the file's version. */
  #version: Version | undefined;

  constructor(url: string, options: HttpOptions) {
    this.#url = url;
    this.#options = options;
  }

  /** The file's length; the file itself where a part of it cannot be had and it is small. */
  async open(): Promise<Opened> {
    const retries = new Retries(this.#url, this.#options);
    for (;;) {
      const watch = this.#watch();
      try {
        return await this.#openOnce(watch);
      } catch (error) {
        await retries.pause(error);
      } finally {
        watch.stop();
      }
    }
  }

  async #openOnce(watch: Watch): Promise<Opened> {
    // Two bytes: some servers take a range that ends at 0 for one without an end.
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

  /** The length as a server tells it that hides `Content-Range` from pages of other origins. */
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
        `\`${this.#url}\` ignores Range requests: it answered 200 instead of 206, and the file is too large to be read whole`,
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
    // Fewer bytes than announced are a broken connection; more can be a compressed answer, which is whole.
    if (announced !== undefined && length < announced) {
      throw new Passing(`the answer ended after ${length} of ${announced} bytes`);
    }
    const whole = new Uint8Array(length);
    let at = 0;
    for (const part of parts) {
      whole.set(part, at);
      at += part.byteLength;
    }
    return { length, whole };
  }

  /** Exactly the bytes asked for. */
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
        await retries.pause(error);
        if (!progress) {
          pace.start();
        }
      }
    }
    return filling.bytes;
  }

  /** Fills in what one answer brings; of one that breaks off, as much as arrived. */
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
        const message = `\`${this.#url}\` ignores Range requests: it answered 200 instead of 206`;
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
      // A server may send less than was asked for, never something else.
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
        throw new Passing("the answer was empty");
      }
    } finally {
      watch.stop();
    }
  }

  /** Sends one request and sorts the answer: usable, worth trying again, or final. */
  async #request(method: string, watch: Watch, headers: Record<string, string> = {}): Promise<Response> {
    const send = this.#options.fetch ?? fetch;
    let response: Response;
    try {
      response = await send(this.#url, {
        method,
        headers: { ...this.#options.headers, ...headers },
        signal: watch.signal,
        // A browser would keep gigabytes that are read once.
        cache: "no-store",
      });
    } catch (error) {
      const broken = this.#broken(error);
      // Browsers tell pages no more than this, so that they cannot look around.
      throw broken instanceof Passing && this.#isElsewhere
        ? new Passing(`${broken.message}; it is down, or does not let pages of other origins read its files (CORS)`)
        : broken;
    }
    if (isPassing(response.status)) {
      await discard(response);
      throw new Passing(`HTTP status ${response.status}`);
    }
    if (!response.ok && response.status !== 416) {
      await discard(response);
      const { status } = response;
      throw new RullamaError("source.status", `\`${this.#url}\` answered with HTTP status ${status}`, { details: { status } });
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
      // A server could send one byte before each failure, and be asked again forever.
      if (some) {
        this.#check(pace.add(0));
      }
      throw this.#broken(error);
    } finally {
      // Nothing is lost when there is nothing left to cancel.
      await reader.cancel().catch(() => {});
    }
  }

  /** A connection that failed, unless somebody wanted it to end. */
  #broken(error: unknown): Error {
    if (error instanceof RullamaError || error instanceof Passing) {
      return error;
    }
    if (this.#options.signal?.aborted) {
      return RullamaError.cancelled(this.#options.signal.reason);
    }
    return new Passing(error instanceof Error ? error.message : String(error));
  }

  /** Whether the file is of another origin than the page. */
  get #isElsewhere(): boolean {
    const here = (globalThis as { location?: { origin: string } }).location?.origin;
    return here !== undefined && here !== "null" && new URL(this.#url, here).origin !== here;
  }

  #pace(): Pace {
    const { leastBytes = LEAST_BYTES, window = WINDOW, silence = SILENCE } = this.#options;
    return new Pace(leastBytes, window, silence);
  }

  /** Gives up on a server that was found to be too slow. */
  #check(slow: string | undefined): void {
    if (slow) {
      throw new RullamaError("source.too_slow", `\`${this.#url}\` is too slow: ${slow}`);
    }
  }

  #watch(): Watch {
    return new Watch(this.#options.silence ?? SILENCE, this.#options.signal);
  }

  #changed(how: string): RullamaError {
    return new RullamaError("source.changed", `\`${this.#url}\` changed while it was read: ${how}`);
  }

  #wrongRange(response: Response, expected: string): RullamaError {
    const found = response.headers.get("content-range") ?? "";
    const message = `\`${this.#url}\` sent Content-Range \`${found}\`; \`${expected}\` was expected`;
    return new RullamaError("source.content_range", message);
  }
}

/** Counts the failures of one read and waits between them. */
class Retries {
  readonly #url: string;
  readonly #options: HttpOptions;
  #attempts = 0;

  constructor(url: string, options: HttpOptions) {
    this.#url = url;
    this.#options = options;
  }

  /** Waits before the next attempt, or throws what there is no mending. */
  async pause(error: unknown): Promise<void> {
    if (!(error instanceof Passing)) {
      throw error;
    }
    this.#attempts += 1;
    if (this.#attempts === ATTEMPTS) {
      const message = `\`${this.#url}\` could not be read in ${ATTEMPTS} attempts: ${error.message}`;
      throw new RullamaError("source.connection", message);
    }
    const { signal, firstPause = FIRST_PAUSE } = this.#options;
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
