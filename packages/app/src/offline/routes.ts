// Which requests the service worker answers, and how. Apart from the worker so that it can be tested.

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
  return files.has(path) ? "file" : "network";
}
