// A small server for the browser tests: it serves the built package, and files with Range and ETag whose bytes it
// counts and whose connections it slows down or cuts. It listens twice, because another port is another origin.

import { createServer } from "node:http";
import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { join, normalize } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

const PACKAGE = fileURLToPath(new URL("../..", import.meta.url));
const CHUNK = 256 * 1024;

const PAGE = `<!doctype html><title>store</title><script type="module">
  import * as api from "/dist/store/index.js";
  window.api = api;
  api.ModelStore.open().then((store) => { window.store = store; }, (error) => { window.failed = String(error); });
</script>`;

export class TestServer {
  /** Files by name: { content, etag, pause (ms between chunks), cuts: [bytes…], claims: a false length, cross }. */
  files = new Map();
  /** Requests for files: { name, method, range, ifRange, sent }. */
  requests = [];
  #servers = [];

  async start() {
    for (let i = 0; i < 2; i++) {
      const server = createServer((request, response) => void this.#answer(request, response, i).catch((error) => {
        console.error(error);
        response.destroy();
      }));
      await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
      this.#servers.push(server);
    }
    [this.origin, this.otherOrigin] = this.#servers.map((server) => `http://localhost:${server.address().port}`);
  }

  stop() {
    for (const server of this.#servers) {
      server.closeAllConnections();
      server.close();
    }
  }

  add(name, content, options = {}) {
    const file = { content, etag: `"${name}-1"`, pause: 0, cuts: [], ...options };
    this.files.set(name, file);
    return file;
  }

  /** Requests for one file so far. */
  of(name) {
    return this.requests.filter((request) => request.name === name);
  }

  sent(name) {
    return this.of(name).reduce((sum, request) => sum + request.sent, 0);
  }

  async #answer(request, response, which) {
    const path = new URL(request.url, "http://localhost").pathname;
    if (path.startsWith("/files/")) return this.#file(request, response, decodeURIComponent(path.slice("/files/".length)), which);
    if (path === "/" || path === "/favicon.ico") {
      response.setHeader("Content-Type", "text/html; charset=utf-8");
      return response.end(path === "/" ? PAGE : "");
    }
    const folder = path.startsWith("/dist/") ? PACKAGE : join(PACKAGE, "test/browser");
    const body = await readFile(join(folder, normalize(path))).catch(() => undefined);
    if (body === undefined) return response.writeHead(404).end();
    response.setHeader("Content-Type", "text/javascript; charset=utf-8");
    response.end(body);
  }

  async #file(request, response, name, which) {
    const file = this.files.get(name);
    const log = { name, method: request.method, range: request.headers.range ?? null, ifRange: request.headers["if-range"] ?? null, sent: 0 };
    this.requests.push(log);
    // The other origin answers no preflight and shows no headers, like many servers of models.
    if (which === 1 && request.method === "OPTIONS") return response.writeHead(403).end();
    if (which === 1) response.setHeader("Access-Control-Allow-Origin", "*");
    if (!file) return response.writeHead(404).end();
    const match = /^bytes=(\d+)-(\d*)$/.exec(log.range ?? "");
    const ranged = match !== null && (log.ifRange === null || log.ifRange === file.etag);
    const start = ranged ? Number(match[1]) : 0;
    const total = file.claims ?? file.content.length;
    const end = ranged && match[2] ? Math.min(Number(match[2]) + 1, total) : total;
    if (ranged && start >= total) return response.writeHead(416, { "Content-Range": `bytes */${total}` }).end();
    response.writeHead(ranged ? 206 : 200, {
      "ETag": file.etag,
      "Content-Length": end - start,
      ...(ranged ? { "Content-Range": `bytes ${start}-${end - 1}/${total}` } : {}),
    });
    const cut = file.cuts.shift() ?? Infinity;
    for (let at = start; at < end && !response.destroyed; ) {
      const piece = file.content.subarray(at, Math.min(at + CHUNK, end, start + cut));
      if (piece.length === 0) break;
      const room = response.write(piece);
      log.sent += piece.length;
      at += piece.length;
      if (!room) await drained(response);
      if (file.pause) await sleep(file.pause);
    }
    if (cut !== Infinity || log.sent < end - start) {
      // A browser drops what it has buffered when the line goes dead. The pause lets it hand everything on first, so
      // that the bytes counted here are the bytes the page saw.
      await sleep(500);
      return response.destroy();
    }
    response.end();
  }
}

function drained(response) {
  return new Promise((resolve) => {
    const done = () => {
      response.off("drain", done);
      response.off("close", done);
      resolve();
    };
    response.on("drain", done);
    response.on("close", done);
  });
}
