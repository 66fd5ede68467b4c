// A page that brings its own worker, to be built by Vite.

import { Engine } from "rullama";

globalThis.testBody = async () => {
  const worker = new Worker(new URL("./worker.js", import.meta.url), { type: "module" });
  const options = { context: 256, selfTest: false, worker };
  const engine = await Engine.load("/models/micro-e2b-Q8_0.gguf", options);
  const { ids } = await engine.generate("Hello", { temperature: 0, maxTokens: 2 }).result();
  await engine.unload();
  if (ids.length !== 2) throw new Error(`${ids.length} tokens came`);
};
