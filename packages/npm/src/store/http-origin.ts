// A file on a server, asked for with Range so that a broken download goes on at the byte where it stopped.
//
// Three rules of browsers shape the requests. `Range` alone needs no preflight, `If-Range` does, and many servers
// of models do not answer one: it is sent to our own origin only, and the answer's validator is compared in any
// case. A request with `Range` is never compressed, so sizes mean what they say: the first request has one too.
// Of another origin's headers only some are visible; where Content-Range is not, Content-Length gives the size.

import { StoreError, cancelled } from "./error.js";
import type { Origin, OriginReply } from "./origin.js";
import { isDigest } from "./record.js";

/** The connection broke or the server was busy: worth another try, after `wait` milliseconds if it said so. */
export class Interrupted extends StoreError {
  readonly wait: number | undefined;

  constructor(message: string, details: { status?: number } = {}, wait?: number, options?: ErrorOptions) {
    super("network.failed", message, details, options);
    this.wait = wait;
  }
}

export interface HttpOptions {
  headers?: HeadersInit;
  /** Whether an ETag of 64 hex digits is the SHA-256 of the file. True unless told. */
  etagIsHash?: boolean;
  fetch?: typeof fetch;
}

const BUSY = new Set([408, 425, 429, 500, 502, 503, 504]);
const LONGEST_WAIT = 60_000;

export class HttpOrigin implements Origin {
  readonly url: string;
  readonly #options: HttpOptions;

  constructor(url: string, options: HttpOptions = {}) {
    this.url = url;
    this.#options = options;
  }

  async open(offset: number, validator: string | undefined, signal: AbortSignal, end?: number): Promise<OriginReply> {
    const headers = new Headers(this.#options.headers);
    headers.set("Range", `bytes=${offset}-${end === undefined ? "" : end - 1}`);
    const strong = validator !== undefined && !validator.startsWith("W/");
    if (offset > 0 && strong && isOwnOrigin(this.url)) headers.set("If-Range", validator);

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
    void response.body?.cancel().catch(() => {});
    const status = response.status;
    const message = `${this.url} answered ${status} ${response.statusText}`.trimEnd();
    if (BUSY.has(status)) throw new Interrupted(message, { status }, retryAfter(response));
    if (status === 416) throw new StoreError("network.range", `${message}: it has no bytes from ${offset} on`, { status });
    throw new StoreError("network.failed", message, { status });
  }

  #partial(response: Response, asked: number): OriginReply {
    const range = /^bytes (\d+)-(\d+)\/(\d+|\*)$/.exec(response.headers.get("Content-Range") ?? "");
    const length = numberIn(response.headers.get("Content-Length"));
    const total = range && range[3] !== "*" ? Number(range[3]) : undefined;
    return this.#reply(response, range ? Number(range[1]) : asked, total ?? (length === undefined ? undefined : asked + length));
  }

  #whole(response: Response): OriginReply {
    const encoded = response.headers.get("Content-Encoding");
    const length = encoded && encoded !== "identity" ? undefined : numberIn(response.headers.get("Content-Length"));
    return this.#reply(response, 0, length);
  }

  #reply(response: Response, offset: number, bytes: number | undefined): OriginReply {
    const validator = response.headers.get("ETag") ?? response.headers.get("Last-Modified") ?? undefined;
    const sha256 = digestIn(this.url, response, this.#options.etagIsHash ?? true);
    return {
      offset,
      ...(bytes === undefined ? {} : { bytes }),
      ...(validator === undefined ? {} : { validator }),
      ...(sha256 === undefined ? {} : { sha256 }),
      body: response.body ?? new Blob([]).stream(),
    };
  }
}

/** The SHA-256 an answer promises: in its address (Ollama's blobs), or as its ETag. */
export function digestIn(url: string, response: { headers: Headers; url?: string }, etagIsHash: boolean): string | undefined {
  const named = /sha256(?::|-|%3a)([0-9a-f]{64})(?![0-9a-f])/i.exec(url);
  if (named) return named[1]!.toLowerCase();
  // Hugging Face says the digest of a large file here, and proxies of it pass it on.
  const linked = digestOfEtag(response.headers.get("X-Linked-ETag"));
  if (linked) return linked.digest;
  const tag = digestOfEtag(response.headers.get("ETag"));
  if (!tag) return undefined;
  if (tag.labelled) return tag.digest;
  // Its CDN answers with another hash of the same length as ETag, the one its Xet storage is keyed by.
  const xet = /\/xet-bridge/.test(response.url ?? "") || response.headers.get("X-Xet-Hash") !== null;
  return etagIsHash && !xet ? tag.digest : undefined;
}

function digestOfEtag(etag: string | null): { digest: string; labelled: boolean } | undefined {
  const match = /^(?:W\/)?"?(sha256:)?([0-9a-f]{64})"?$/i.exec(etag?.trim() ?? "");
  const digest = match?.[2]?.toLowerCase();
  return isDigest(digest) ? { digest, labelled: match?.[1] !== undefined } : undefined;
}

function retryAfter(response: Response): number | undefined {
  const seconds = numberIn(response.headers.get("Retry-After"));
  return seconds === undefined ? undefined : Math.min(seconds * 1000, LONGEST_WAIT);
}

function numberIn(text: string | null): number | undefined {
  return text !== null && /^\d+$/.test(text.trim()) ? Number(text) : undefined;
}

function isOwnOrigin(url: string): boolean {
  const here = globalThis.location?.href;
  if (here === undefined) return true;
  return new URL(url, here).origin === globalThis.location.origin;
}
