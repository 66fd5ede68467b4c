// Which requests the service worker answers, how, and what it keeps. Apart from the worker so that it can be tested.

/** `page`: the network first, else the stored page. `file`: the stored file. `network`: none of our business. */
export type Route = "page" | "file" | "network";

export interface Asked {
  method: string;
  /** `request.mode`; `navigate` for a page. */
  mode: string;
  url: string;
  /** Whether it asks for a part of something, as readers of models do. */
  range: boolean;
}

/** Models and what the server answers are never stored here: models have a store of their own. */
export function route(asked: Asked, scope: string, files: ReadonlySet<string>): Route {
  const url = new URL(asked.url);
  const base = new URL(scope);
  if (asked.method !== "GET" || asked.range || url.origin !== base.origin || !url.pathname.startsWith(base.pathname)) {
    return "network";
  }
  const path = url.pathname.slice(base.pathname.length);
  if (asked.mode === "navigate") {
    // Only the app's own page; other pages of this server are not ours to answer for.
    return path === "" || path === "index.html" ? "page" : "network";
  }
  if (path.endsWith(".gguf")) {
    return "network";
  }
  // Those with a hash in their name may be of the build before, which some tab still has open.
  return files.has(path) || path.startsWith("assets/") ? "file" : "network";
}

/** The caches that no tab needs any more, of all in the order in which they were made: all but this one and the one before. */
export function outdated(names: readonly string[], prefix: string, current: string): string[] {
  return names.filter((name) => name.startsWith(prefix) && name !== current).slice(0, -1);
}
