// The five lines of the guide, in a page that forbids all code but its own files.

import { Engine } from "/dist/index.js";

const out = document.querySelector("#out");

globalThis.testBody = async () => {
  const url = "/models/micro-e2b-Q8_0.gguf";
  const engine = await Engine.load(url, { context: 512 });
  const options = { temperature: 0, think: false, maxTokens: 4, ignoreEos: true };
  for await (const delta of engine.chat([{ role: "user", content: "Hello" }], options)) out.append(delta.text);
  await engine.unload();
  if (out.textContent === "") throw new Error("nothing was said");
};
