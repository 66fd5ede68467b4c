// Advice in error messages.

/** Why the worker or the wasm file cannot be loaded, most often, and how to fix it. */
export const BUNDLER_HINT =
  "With Vite, add `optimizeDeps: { exclude: [\"rullama\"] }` to the Vite configuration, so that the development server does not move " +
  "the package away from its worker and wasm files. Otherwise check that all files of the package's `dist` folder are served.";
