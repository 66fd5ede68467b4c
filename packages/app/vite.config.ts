import { fileURLToPath } from "node:url";
import { defineConfig } from "vite";
import { budget } from "./vite/budget.ts";
import { demoModel } from "./vite/demo-model.ts";
import { katexFonts } from "./vite/katex-fonts.ts";
import { offline } from "./vite/offline.ts";
import { policy } from "./vite/policy.ts";

const at = (path: string) => fileURLToPath(new URL(path, import.meta.url));

export default defineConfig({
  // Relative, so that the same build works at the root of a server and in a folder of one.
  base: "./",
  plugins: [demoModel(), katexFonts(), policy(), budget(), offline()],
  worker: { format: "es" },
  // The variant for browsers decodes `&name;` by giving it to `innerHTML`; this one has a table.
  resolve: { alias: { "decode-named-character-reference": at("node_modules/decode-named-character-reference/index.js") } },
  // The package finds its worker and its wasm by its own address; bundling it beforehand would move it.
  optimizeDeps: { exclude: ["rullama"] },
  build: {
    target: "es2022",
    modulePreload: { polyfill: false },
    // The policy lets no data: address in, so every file stays a file.
    assetsInlineLimit: 0,
    rolldownOptions: {
      input: { index: at("index.html"), "service-worker": at("src/offline/service-worker.ts") },
      output: {
        // A service worker must keep its name: browsers compare it with what they have by its address.
        entryFileNames: ({ name }) => (name === "service-worker" ? "[name].js" : "assets/[name]-[hash].js"),
      },
    },
  },
});
