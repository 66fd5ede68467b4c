// The service worker: after the first visit, the built app works without a network.
//
// It stores all files of one build together. The page is requested from the network first, so that a new build shows at the next
// visit; if the network does not answer in time, the stored page is used, and all its files are stored. The stored page is never
// replaced alone: its files would be missing offline. The previous build stays until the next one arrives, for tabs that still use it.

import { outdated, route } from "./routes";

// The build puts these constants before this code; see vite/offline.ts.
declare const VERSION: string;
declare const FILES: readonly string[];

const scope = globalThis as unknown as ServiceWorkerGlobalScope;
const CACHE_PREFIX = "rullama-app-";
const CACHE = CACHE_PREFIX + VERSION;
/** Milliseconds to wait for the network. */
const PATIENCE = 4000;

const files = new Set(FILES);

scope.addEventListener("install", (event) => {
  event.waitUntil(store());
});

scope.addEventListener("activate", (event) => {
  event.waitUntil(takeOver());
});

scope.addEventListener("message", (event) => {
  if (event.data === "take over") {
    void scope.skipWaiting();
  }
});

scope.addEventListener("fetch", (event) => {
  const { request } = event;
  const asked = { method: request.method, mode: request.mode, url: request.url, range: request.headers.has("range") };
  switch (route(asked, scope.registration.scope, files)) {
    case "page":
      return event.respondWith(page(request));
    case "file":
      return event.respondWith(file(request));
    case "network":
      return;
  }
});

async function store(): Promise<void> {
  const cache = await caches.open(CACHE);
  // Bypasses the browser's own cache, which may have a file of the previous build under the same name.
  await cache.addAll(FILES.map((path) => new Request(address(path), { cache: "reload" })));
}

async function takeOver(): Promise<void> {
  for (const name of outdated(await caches.keys(), CACHE_PREFIX, CACHE)) {
    await caches.delete(name);
  }
  // The page that installed this worker works offline from now on, not only from its next visit.
  await scope.clients.claim();
}

async function page(request: Request): Promise<Response> {
  const stored = async () => (await (await caches.open(CACHE)).match(address("index.html"))) ?? Response.error();
  const signal = AbortSignal.timeout(PATIENCE);
  try {
    const answer = await fetch(request, { signal });
    return answer.ok ? answer : await stored();
  } catch {
    return stored();
  }
}

async function file(request: Request): Promise<Response> {
  const cache = await caches.open(CACHE);
  // Then the files of the previous build, which have other names.
  return (await cache.match(request, { ignoreSearch: true })) ?? (await caches.match(request, { ignoreSearch: true })) ?? fetch(request);
}

function address(path: string): string {
  return new URL(path, scope.registration.scope).href;
}
