// The demo model writes in a browser what transformers and llama.cpp write with the same file, as it does natively
// (crates/engine/tests/demo.rs). With an f32 cache there is nothing to allow for: replies are the same, token by token.

import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { pageTest } from "./in-page.mjs";

const root = new URL("../../../../", import.meta.url);

export async function prepare() {
  const references = JSON.parse(await readFile(new URL("testdata/demo/demo.refs.json", root)));
  const sha256 = createHash("sha256").update(await readFile(new URL("models/demo.gguf", root))).digest("hex");
  if (sha256 !== references.sha256) {
    throw new Error("models/demo.gguf is not the file that testdata/demo was made with; `cargo xtask goldens --make` makes it anew");
  }
  const prompts = references.prompts.map((prompt, number) => ({ ...prompt, number }));
  if (prompts.length !== 50) {
    throw new Error(`${prompts.length} prompts; there must be 50`);
  }
  return { prompts, maxTokens: references.greedy_steps };
}

/** The shortest prompt of each task: all fifty are asked natively. */
export function oneOfEach(prompts) {
  const tasks = new Map();
  for (const prompt of [...prompts].sort((a, b) => a.ids.length - b.ids.length)) {
    tasks.set(prompt.task, tasks.get(prompt.task) ?? prompt);
  }
  return [...tasks.values()];
}

/** In the page. */
async function writesTheSame({ Engine }, { prompts, maxTokens }, assert) {
  const engine = await Engine.load("/demo/demo.gguf", { backend: "gpu", kv: "f32", context: 1024, selfTest: false });
  for (const { number, task, prompt, ids, greedy, llama_cpp: llamaCpp } of prompts) {
    const place = `prompt ${number}, ${task},`;
    assert.equal([...(await engine.tokenize(prompt, { bos: true }))], ids, `${place} tokens of the prompt:`);
    const reply = await engine.generate(ids, { temperature: 0, maxTokens }).result();
    assert.equal([...reply.ids], greedy, `${place} transformers:`);
    assert.equal([...reply.ids], llamaCpp, `${place} llama.cpp:`);
  }
  await engine.unload();
}

export const demo = pageTest({
  title: "the demo model, asked one prompt of each task, writes what transformers and llama.cpp write",
  // Chromium would take minutes; there the CPU is asked.
  browsers: ["firefox"],
  gpu: [],
  body: writesTheSame,
  async prepare() {
    const { prompts, maxTokens } = await prepare();
    return { prompts: oneOfEach(prompts), maxTokens };
  },
});
