// The Content-Security-Policy of the built page.
//
// Only in builds: while developing, Vite puts styles and its own client into the page. `connect-src` is wide because people
// load models from addresses they type; everything that could run or show foreign things is closed.

import type { Plugin } from "vite";

const POLICY = [
  "default-src 'none'",
  "script-src 'self' 'wasm-unsafe-eval'",
  "worker-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  // The fonts of KaTeX, which are files of the app.
  "font-src 'self'",
  "manifest-src 'self'",
  "connect-src 'self' https: http:",
  "base-uri 'none'",
  "form-action 'none'",
].join("; ");

export function policy(): Plugin {
  return {
    name: "rullama-policy",
    apply: "build",
    transformIndexHtml: () => [
      {
        tag: "meta",
        attrs: { "http-equiv": "Content-Security-Policy", content: POLICY },
        // Before anything it is to hold for.
        injectTo: "head-prepend",
      },
    ],
  };
}
