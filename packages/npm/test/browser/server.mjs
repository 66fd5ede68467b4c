// A server for test pages: the package as it is published, test models, and answers that servers should not give.
//
// A page with the word `isolated` in its query is isolated from others, as threads need it. Below `/without-threads/` is the package without the script of a
// thread. A path of `/models/NAME` or `/demo/NAME` answers Range requests. Words in the query change that, each in its own way: see
// `ODDITIES`.

import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { extname, join, normalize } from "node:path";
import { fileURLToPath } from "node:url";

const here = (path) => fileURLToPath(new URL(path, import.meta.url));

/** Where the files of a path's first folder are. */
const FOLDERS = {
  dist: here("../../dist"),
  "without-threads": here("../../dist"),
  models: here("../../../../testdata/gguf"),
  demo: here("../../../../models"),
  pages: here("pages"),
};

const TYPES = {
  ".html": "text/html",
  ".js": "text/javascript",
  ".mjs": "text/javascript",
  ".css": "text/css",
  ".json": "application/json",
  ".wasm": "application/wasm",
};

/** A policy as Chrome extensions have it: no code from elsewhere, none made from text. */
const EXTENSION_POLICY = "default-src 'self'; script-src 'self' 'wasm-unsafe-eval'; object-src 'self'";

/** What a page that is isolated sends, and the scripts of its workers. */
const ISOLATED = { "cross-origin-opener-policy": "same-origin", "cross-origin-embedder-policy": "require-corp" };

const ODDITIES = ["whole", "hidden", "total", "broken", "missing", "changing", "wrong", "slow"];

/**
 * Starts the server. `origin` is its address; `requests` is what it was asked since it was last emptied; `folders` may be
 * added to.
 */
export async function serve() {
  const folders = { ...FOLDERS };
  const requests = [];
  /** How often each address was asked for. */
  const counts = new Map();
  const server = createServer(async (request, response) => {
    const url = new URL(request.url, "http://localhost");
    requests.push({ method: request.method, path: url.pathname, range: request.headers.range });
    const count = (counts.get(request.url) ?? 0) + 1;
    counts.set(request.url, count);
    try {
      await answer(url, request, response, count, folders);
    } catch (error) {
      response.writeHead(404, { "content-type": "text/plain" });
      response.end(String(error));
    }
  });
  await new Promise((resolve, reject) => {
    server.on("error", reject);
    server.listen(0, "127.0.0.1", resolve);
  });
  const { port } = server.address();
  const close = () => {
    server.closeAllConnections();
    server.close();
  };
  return { origin: `http://127.0.0.1:${port}`, requests, folders, close };
}

async function answer(url, request, response, count, folders) {
  const [folder, ...rest] = url.pathname.split("/").filter(Boolean);
  if (!folder) {
    response.writeHead(200, { "content-type": "text/html", ...(url.searchParams.has("isolated") ? ISOLATED : {}) });
    return response.end('<!doctype html><meta charset="utf-8"><title>rullama</title>');
  }
  if (folder === "favicon.ico") {
    response.writeHead(204);
    return response.end();
  }
  const path = join(folders[folder] ?? "/nowhere", normalize(join("/", ...rest)));
  if (folder === "models" || folder === "demo") {
    const oddities = ODDITIES.filter((word) => url.searchParams.has(word));
    return answerModel(path, request, response, count, oddities);
  }
  const headers = { "content-type": TYPES[extname(path)] ?? "application/octet-stream" };
  // The scripts of workers need them as well, and do not know of their page.
  if (extname(path) === ".js" || url.searchParams.has("isolated")) {
    Object.assign(headers, ISOLATED);
  }
  if (folder === "without-threads" && rest.join() === "thread.js") {
    response.writeHead(404);
    return response.end();
  }
  if (url.searchParams.has("extension")) {
    headers["content-security-policy"] = EXTENSION_POLICY;
  }
  const content = await readFile(path);
  response.writeHead(200, headers);
  response.end(content);
}

async function answerModel(path, request, response, count, oddities) {
  const odd = (word) => oddities.includes(word);
  const file = odd("missing") ? undefined : await readFile(path);
  if (!file) {
    response.writeHead(403);
    return response.end();
  }
  const total = odd("changing") && count > 2 ? file.length + 1 : file.length;
  const range = /^bytes=(\d+)-(\d+)$/.exec(request.headers.range ?? "");
  if (request.method === "HEAD" || !range || odd("whole")) {
    response.writeHead(200, { "content-length": file.length });
    return response.end(request.method === "HEAD" ? undefined : file);
  }
  const first = Number(range[1]) + (odd("wrong") && count > 1 ? 1 : 0);
  const last = Math.min(Number(range[2]), file.length - 1);
  if (first > last) {
    response.writeHead(416, { "content-range": `bytes */${total}` });
    return response.end();
  }
  const body = file.subarray(first, last + 1);
  const headers = { "content-length": body.length };
  if (odd("total")) {
    headers["x-total-size"] = total;
  } else if (!odd("hidden")) {
    headers["content-range"] = `bytes ${first}-${last}/${total}`;
  }
  if (odd("slow")) {
    await new Promise((resolve) => setTimeout(resolve, 300));
  }
  if (odd("broken") && count % 3 === 1) {
    response.writeHead(503);
    return response.end();
  }
  response.writeHead(206, headers);
  if (odd("broken") && count % 3 === 2 && body.length > 1) {
    // Half of what was promised, and then nothing.
    response.write(body.subarray(0, body.length >> 1), () => response.destroy());
    return;
  }
  response.end(body);
}
