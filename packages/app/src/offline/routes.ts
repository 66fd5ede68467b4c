// Which requests the service worker answers, and how. In a file of its own so that it can be tested.

/** `page`: the network first, then the stored page. `file`: the stored file. `network`: not answered by the worker. */
export type Route = "page" | "file" | "network";

export interface Asked {
  method: string;
  /** `request.mode`; `navigate` for a page. */
  mode: string;
  url: string;
  /** Whether it is a Range request, as for models. */
  range: boolean;
}

/** Models and the server's API are never stored here: models have a store of their own. */
export function route(asked: Asked, scope: string, files: ReadonlySet<string>): Route {
  const url = new URL(asked.url);
  const base = new URL(scope);
  if (asked.method !== "GET" || asked.range || url.origin !== base.origin || !url.pathname.startsWith(base.pathname)) {
    return "network";
  }
  const path = url.pathname.slice(base.pathname.length);
  if (asked.mode === "navigate") {
    // Only the app's own page, not other pages of this server.
    return path === "" || path === "index.html" ? "page" : "network";
  }
  if (path.endsWith(".gguf")) {
    return "network";
  }
  // Assets may belong to the previous build, which another tab may still have open.
  return files.has(path) || path.startsWith("assets/") ? "file" : "network";
}

/** The caches that no tab needs any more: all but the current one and the one before. `names` is in order of creation. */
export function outdated(names: readonly string[], prefix: string, current: string): string[] {
  return names.filter((name) => name.startsWith(prefix) && name !== current).slice(0, -1);
}
