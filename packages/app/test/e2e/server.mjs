// A small server for the tests, for what `rullama serve` never does: it is an ordinary server without models, slow, silent, or
// has a newer app than a moment ago, and counts what it is asked. With `api` it has a model and a log, as ours does.

import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { extname, join, normalize } from "node:path";
import { fileURLToPath } from "node:url";

const here = (path) => fileURLToPath(new URL(path, import.meta.url));
const DIST = here("../../dist");
const MODELS = here("../../../../testdata/gguf");

const TYPES = {
  ".html": "text/html",
  ".js": "text/javascript",
  ".css": "text/css",
  ".svg": "image/svg+xml",
  ".png": "image/png",
  ".wasm": "application/wasm",
  ".webmanifest": "application/manifest+json",
};

/**
 * Starts the server. `requests` is what it was asked; `logs` what was sent to it. `behaviour` changes how it answers: `api` whether
 * it has a model to offer and a log, `ranges` whether the app's own model can be had in parts as well, `pause` milliseconds before
 * each piece of a model, `pieces` bytes of one, `cut` the byte of a model before which every connection breaks, `newer` whether
 * the app is another version than it was, `silent` whether it says nothing.
 */
export async function serve() {
  const requests = [];
  const logs = [];
  const behaviour = { api: false, ranges: false, pause: 0, pieces: 256 * 1024, cut: Infinity, newer: false, silent: false };
  const server = createServer((request, response) => {
    answer(request, response).catch((error) => {
      response.writeHead(404, { "content-type": "text/plain" });
      response.end(String(error.message));
    });
  });

  async function answer(request, response) {
    const { pathname, searchParams } = new URL(request.url, "http://localhost");
    requests.push({ method: request.method, path: pathname, range: request.headers.range });
    if (behaviour.silent) {
      return;
    }
    if (behaviour.api && pathname.startsWith("/api/")) {
      return answerApi(pathname, searchParams, request, response);
    }
    if (pathname.startsWith("/models/")) {
      return sendModel(join(MODELS, normalize(pathname.slice("/models".length))), request, response);
    }
    const path = normalize(pathname === "/" ? "/index.html" : pathname);
    if (behaviour.ranges && path.endsWith(".gguf")) {
      return sendModel(join(DIST, path), request, response);
    }
    const file = await readFile(join(DIST, path));
    const body = behaviour.newer && path === "/service-worker.js" ? Buffer.from(String(file).replace('VERSION="', 'VERSION="newer-')) : file;
    const type = TYPES[extname(path)] ?? "application/octet-stream";
    response.writeHead(200, { "content-type": type, "content-length": body.length, "cache-control": "no-cache" });
    response.end(body);
  }

  async function answerApi(pathname, searchParams, request, response) {
    const send = (value) => response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(value));
    if (pathname === "/api/models") {
      const model = { name: "micro:e2b", bytes: 2158784, url: "/models/micro-e2b-Q8_0.gguf", family: "gemma4", parameters: "1M", format: "Q8_0" };
      return send({ models: [model] });
    }
    if (request.method === "POST") {
      let text = "";
      for await (const piece of request) {
        text += piece;
      }
      logs.push(JSON.parse(text));
      return response.writeHead(204).end();
    }
    const since = Number(searchParams.get("since") ?? 0);
    const messages = logs.map(({ tag, text }, index) => ({ sequence: index + 1, tag, text })).filter(({ sequence }) => sequence > since);
    return send({ messages, latest: logs.length });
  }

  async function sendModel(path, request, response) {
    const file = await readFile(path);
    const range = /^bytes=(\d+)-(\d*)$/.exec(request.headers.range ?? "");
    const first = range ? Number(range[1]) : 0;
    const last = range?.[2] ? Math.min(Number(range[2]), file.length - 1) : file.length - 1;
    const body = file.subarray(first, last + 1);
    const headers = { "content-length": body.length, "accept-ranges": "bytes", etag: '"test"' };
    response.writeHead(range ? 206 : 200, range ? { ...headers, "content-range": `bytes ${first}-${last}/${file.length}` } : headers);
    if (request.method === "HEAD") {
      return response.end();
    }
    for (let at = 0; at < body.length && !response.destroyed; at += behaviour.pieces) {
      // Downloads ask for a file to its end. Reading a header alone is never slow.
      if (behaviour.pause > 0 && !range?.[2]) {
        await new Promise((resolve) => setTimeout(resolve, behaviour.pause));
      }
      if (first + at >= behaviour.cut) {
        response.destroy();
        return;
      }
      response.write(body.subarray(at, at + behaviour.pieces));
    }
    response.end();
  }

  await new Promise((resolve, reject) => {
    server.on("error", reject);
    server.listen(0, "127.0.0.1", resolve);
  });
  const close = () => {
    server.closeAllConnections();
    server.close();
  };
  return { origin: `http://127.0.0.1:${server.address().port}`, requests, logs, behaviour, close };
}
