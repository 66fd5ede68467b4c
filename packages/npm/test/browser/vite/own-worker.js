// A page that brings its own worker, to be built by Vite.

import { Engine } from "rullama";
import { generateTwo } from "./generate.js";

globalThis.testBody = () => {
  const worker = new Worker(new URL("./worker.js", import.meta.url), { type: "module" });
  return generateTwo(Engine, { worker });
};
