// A server in memory, as `fetch`: it knows ranges and validators, counts what it sends, and fails when told to.

import { createHash } from "node:crypto";

export class FakeServer {
  bytes: Uint8Array;
  etag: string | undefined;
  /** Answers 200 with everything, whatever range was asked for. */
  ignoresRanges = false;
  /** Breaks the connection after so many bytes of the next answers, one entry each. */
  breaks: number[] = [];
  /** Breaks the connection after so many bytes of all other answers. */
  breaksAlways = Infinity;
  /** Statuses to answer with before serving. */
  statuses: number[] = [];
  /** Sends no Content-Length and no Content-Range. */
  hidesSize = false;
  chunk = 1000;
  /** Called with the count so far before each chunk. */
  onChunk: ((sent: number) => void | Promise<void>) | undefined;
  headers: Record<string, string> = {};

  /** Bytes of bodies sent. */
  sent = 0;
  requests: { range: string | null; ifRange: string | null }[] = [];

  constructor(bytes: Uint8Array, etag: string | undefined = '"v1"') {
    this.bytes = bytes;
    this.etag = etag;
  }

  fetch = async (_url: unknown, init?: RequestInit): Promise<Response> => {
    const headers = new Headers(init?.headers);
    const range = headers.get("Range");
    const ifRange = headers.get("If-Range");
    this.requests.push({ range, ifRange });
    if (init?.signal?.aborted) throw new DOMException("aborted", "AbortError");
    const status = this.statuses.shift();
    if (status === 0) throw new TypeError("fetch failed");
    if (status) return new Response("no", { status });
    const match = /^bytes=(\d+)-(\d*)$/.exec(range ?? "");
    const fresh = ifRange === null || ifRange === this.etag;
    const ranged = match !== null && fresh && !this.ignoresRanges;
    const start = ranged ? Number(match[1]) : 0;
    const end = ranged && match[2] ? Math.min(Number(match[2]) + 1, this.bytes.length) : this.bytes.length;
    if (ranged && start >= this.bytes.length) {
      return new Response(null, { status: 416, headers: { "Content-Range": `bytes */${this.bytes.length}` } });
    }
    const answer = new Headers(this.headers);
    if (this.etag) answer.set("ETag", this.etag);
    if (!this.hidesSize) {
      answer.set("Content-Length", String(end - start));
      if (ranged) answer.set("Content-Range", `bytes ${start}-${end - 1}/${this.bytes.length}`);
    }
    return new Response(this.#body(start, end, init?.signal), { status: ranged ? 206 : 200, headers: answer });
  };

  #body(start: number, end: number, signal: AbortSignal | null | undefined): ReadableStream<Uint8Array> {
    const breakAfter = this.breaks.shift() ?? this.breaksAlways;
    const content = this.bytes;
    let at = start;
    return new ReadableStream<Uint8Array>({
      pull: async (controller) => {
        if (signal?.aborted) return controller.error(new DOMException("aborted", "AbortError"));
        if (at - start >= breakAfter) return controller.error(new TypeError("network error"));
        if (at >= end) return controller.close();
        await this.onChunk?.(this.sent);
        const piece = content.slice(at, Math.min(at + this.chunk, end, start + breakAfter));
        this.sent += piece.length;
        at += piece.length;
        controller.enqueue(piece);
      },
    }, { highWaterMark: 0 });
  }
}

/** A file that starts as GGUF does, with pseudo-random bytes after that. */
export function noise(length: number, seed = 1): Uint8Array<ArrayBuffer> {
  let x = seed;
  const bytes = Uint8Array.from({ length }, () => {
    x = (Math.imul(x, 1664525) + 1013904223) >>> 0;
    return x >>> 24;
  });
  bytes.set(new TextEncoder().encode("GGUF").subarray(0, length));
  return bytes;
}

export function digest(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex");
}
