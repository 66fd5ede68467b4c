// The Content-Security-Policy of the built page.
//
// Only in builds: during development, Vite adds inline styles and its own client to the page. `connect-src` is wide because users
// load models from any address; scripts, styles, images and sounds of other origins are forbidden. What the user attaches has an address
// that begins with blob:.

import type { Plugin } from "vite";

const POLICY = [
  "default-src 'none'",
  "script-src 'self' 'wasm-unsafe-eval'",
  "worker-src 'self'",
  "style-src 'self'",
  "img-src 'self' blob:",
  "media-src 'self' blob:",
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
        // Before everything that it applies to.
        injectTo: "head-prepend",
      },
    ],
  };
}
