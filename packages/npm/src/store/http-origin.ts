// A file on a server, asked for with Range so that a broken download goes on at the byte where it stopped.
//
// Three rules of browsers shape the requests. `Range` alone needs no preflight, `If-Range` does, and many servers
// of models do not answer one: it is sent to our own origin only, and the answer's validator is compared in any
// case. A request with `Range` is never compressed, so sizes mean what they say: the first request has one too.
// Of another origin's headers only some are visible; where Content-Range is not, Content-Length gives the size.

import { contentRange, count, discard, isPassing, isStrong, totalOf, validatorOf } from "../source/wire.js";
import { StoreError, cancelled } from "./error.js";
import type { Origin, OriginReply } from "./origin.js";
import { isDigest } from "./record.js";

/** The connection broke or the server was busy: worth another try, after `wait` milliseconds if it said so. */
export class Interrupted extends StoreError {
  readonly wait: number | undefined;

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
      // no-store: the file goes to the store, a second copy in the HTTP cache would only take room.
      response = await send(this.url, { headers, signal, cache: "no-store" });
    } catch (cause) {
      if (signal.aborted) throw cancelled("the download");
      throw new Interrupted(`no answer from ${this.url}: ${cause instanceof Error ? cause.message : String(cause)}`, {}, undefined, { cause });
    }
    if (response.status === 206) return this.#partial(response, offset);
    if (response.status === 200) return this.#whole(response);
    void discard(response);
    const status = response.status;
    const message = `${this.url} answered ${status} ${response.statusText}`.trimEnd();
    if (isPassing(status)) throw new Interrupted(message, { status }, retryAfter(response));
    if (status === 416) throw new StoreError("source.status", `${message}: it has no bytes from ${offset} on`, { status });
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

/** The SHA-256 an answer promises: in its address (Ollama's blobs), or as a tag that says so or looks like it. */
function digestIn(url: string, headers: Headers): Pick<OriginReply, "sha256" | "guess"> {
  const named = /sha256(?::|-|%3a)([0-9a-f]{64})(?![0-9a-f])/i.exec(url);
  if (named) return { sha256: named[1]!.toLowerCase() };
  // Hugging Face says the digest of a large file here, and proxies of it pass it on.
  const linked = digestOfEtag(headers.get("X-Linked-ETag"));
  if (linked) return { sha256: linked.digest };
  const tag = digestOfEtag(headers.get("ETag"));
  if (!tag) return {};
  // Some servers tag files with another hash of the same length.
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

/** Headers as a list of their own. Those of a caller may be none. */
export function headersOf(headers: HeadersInit | undefined): Headers {
  try {
    return new Headers(headers);
  } catch (cause) {
    throw new StoreError("option.wrong_type", `\`headers\` are no headers: ${cause instanceof Error ? cause.message : String(cause)}`, {}, { cause });
  }
}

function isOwnOrigin(url: string): boolean {
  const here = globalThis.location?.href;
  if (here === undefined) return true;
  return new URL(url, here).origin === globalThis.location.origin;
}
