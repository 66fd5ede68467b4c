// A file on a server, requested with Range so that a broken download continues at the byte where it stopped.
//
// Three rules of browsers shape the requests. `Range` needs no CORS preflight but `If-Range` does, and many model servers do not answer
// preflights: so `If-Range` is sent only to the page's own origin, and the validator of each response is compared in any case. A response
// to `Range` is never compressed, so its sizes are exact: the first request has a Range too. Some headers of other origins are hidden:
// without Content-Range, Content-Length gives the size.

import { statusMessage } from "../source/http.js";
import { contentRange, count, discard, isPassing, isStrong, totalOf, validatorOf } from "../source/wire.js";
import { StoreError, cancelled } from "./error.js";
import type { Origin, OriginReply } from "./origin.js";
import { isDigest } from "./record.js";

/** The connection broke or the server was busy. A retry may help, after `wait` milliseconds if the server says so. */
export class Interrupted extends StoreError {
  readonly wait: number | undefined;
  /** The server did not answer at all. */
  unanswered = false;

  constructor(message: string, details: { status?: number } = {}, wait?: number, options?: ErrorOptions) {
    super(details.status === undefined ? "source.connection" : "source.status", message, details, options);
    this.wait = wait;
  }
}

export interface HttpOptions {
  headers?: HeadersInit;
  fetch?: typeof fetch;
}

const LONGEST_WAIT = 60_000;

export class HttpOrigin implements Origin {
  readonly url: string;
  readonly #options: HttpOptions;

  constructor(url: string, options: HttpOptions = {}) {
    this.url = url;
    this.#options = options;
  }

  async open(offset: number, validator: string | undefined, signal: AbortSignal, end?: number): Promise<OriginReply> {
    const headers = headersOf(this.#options.headers);
    headers.set("Range", `bytes=${offset}-${end === undefined ? "" : end - 1}`);
    if (offset > 0 && validator !== undefined && isStrong(validator) && isOwnOrigin(this.url)) headers.set("If-Range", validator);

    const send = this.#options.fetch ?? globalThis.fetch;
    let response: Response;
    try {
      // no-store: a second copy in the HTTP cache would only take space.
      response = await send(this.url, { headers, signal, cache: "no-store" });
    } catch (cause) {
      if (signal.aborted) throw cancelled("The download");
      const error = new Interrupted(cause instanceof Error ? cause.message : String(cause), {}, undefined, { cause });
      error.unanswered = true;
      throw error;
    }
    if (response.status === 206) return this.#partial(response, offset);
    if (response.status === 200) return this.#whole(response);
    void discard(response);
    const status = response.status;
    const message = statusMessage(this.url, status);
    if (isPassing(status)) throw new Interrupted(message, { status }, retryAfter(response));
    if (status === 416) throw new StoreError("source.status", `${message} The file has no bytes after byte ${offset}.`, { status });
    throw new StoreError("source.status", message, { status });
  }

  #partial(response: Response, asked: number): OriginReply {
    const length = count(response.headers.get("Content-Length"));
    const total = totalOf(response.headers) ?? (length === undefined ? undefined : asked + length);
    return this.#reply(response, contentRange(response.headers)?.first ?? asked, total);
  }

  #whole(response: Response): OriginReply {
    const encoded = response.headers.get("Content-Encoding");
    const length = encoded && encoded !== "identity" ? undefined : count(response.headers.get("Content-Length"));
    return this.#reply(response, 0, length);
  }

  #reply(response: Response, offset: number, bytes: number | undefined): OriginReply {
    const validator = validatorOf(response.headers);
    return {
      offset,
      ...(bytes === undefined ? {} : { bytes }),
      ...(validator === undefined ? {} : { validator }),
      ...digestIn(this.url, response.headers),
      body: response.body ?? new Blob([]).stream(),
    };
  }
}

/** The SHA-256 of the file: from its URL (Ollama's blobs), or from a tag that is one or looks like one. */
function digestIn(url: string, headers: Headers): Pick<OriginReply, "sha256" | "guess"> {
  const named = /sha256(?::|-|%3a)([0-9a-f]{64})(?![0-9a-f])/i.exec(url);
  if (named) return { sha256: named[1]!.toLowerCase() };
  // Hugging Face sends the digest of a large file in this header, and its proxies pass it on.
  const linked = digestOfEtag(headers.get("X-Linked-ETag"));
  if (linked) return { sha256: linked.digest };
  const tag = digestOfEtag(headers.get("ETag"));
  if (!tag) return {};
  // Some servers use another hash of the same length as a tag.
  return tag.labelled ? { sha256: tag.digest } : { guess: tag.digest };
}

function digestOfEtag(etag: string | null): { digest: string; labelled: boolean } | undefined {
  const match = /^(?:W\/)?"?(sha256:)?([0-9a-f]{64})"?$/i.exec(etag?.trim() ?? "");
  const digest = match?.[2]?.toLowerCase();
  return isDigest(digest) ? { digest, labelled: match?.[1] !== undefined } : undefined;
}

function retryAfter(response: Response): number | undefined {
  const seconds = count(response.headers.get("Retry-After"));
  return seconds === undefined ? undefined : Math.min(seconds * 1000, LONGEST_WAIT);
}

/** A copy of the caller's headers, which may be invalid. */
export function headersOf(headers: HeadersInit | undefined): Headers {
  try {
    return new Headers(headers);
  } catch (cause) {
    throw new StoreError("option.wrong_type", `Option \`headers\` is invalid: ${cause instanceof Error ? cause.message : String(cause)}`, {}, { cause });
  }
}

function isOwnOrigin(url: string): boolean {
  const here = globalThis.location?.href;
  if (here === undefined) return true;
  return new URL(url, here).origin === globalThis.location.origin;
}
