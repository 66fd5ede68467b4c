// A page as its author would write it, to be built by Vite.

import { Engine } from "rullama";

globalThis.testBody = async () => {
  const engine = await Engine.load("/models/micro-e2b-Q8_0.gguf", { context: 256, selfTest: false });
  const { ids } = await engine.generate("Hello", { temperature: 0, maxTokens: 2 }).result();
  await engine.unload();
  if (ids.length !== 2) throw new Error(`${ids.length} tokens came`);
};
