// What the package must do in a browser.

import { readFile } from "node:fs/promises";

const testdata = new URL("../../../../testdata/", import.meta.url);

/** A model's greedy tokens by an outside implementation, with the margin of each. */
async function goldens(model) {
  const { prompts } = JSON.parse(await readFile(new URL(`text/${model}.refs.json`, testdata)));
  return prompts.map(({ name, ids, hf_greedy: tokens, hf_greedy_margins: margins }) => ({ name, ids, tokens, margins }));
}

/** In the page: loads a model and compares its tokens with the golden ones. */
async function matchesGoldens({ Engine }, { model, prompts, browser, worker, subgroups }, assert) {
  const engine = await Engine.load(`/models/${model}.gguf`, { kv: "f32", context: 512, worker, subgroups });
  const { info } = engine;
  assert.equal(info.fallbacks, []);
  // Chromium has subgroups, also where wgpu does not know of them; Firefox has none.
  assert.equal(info.gpu.subgroups !== null, browser === "chromium" && subgroups !== false, "subgroups");
  for (const { name, ids, tokens, margins } of prompts) {
    const reply = engine.generate(ids, { temperature: 0, maxTokens: tokens.length, ignoreEos: true });
    const found = (await reply.result()).ids;
    // Where the best two are as near as this, either may be taken, and what follows differs.
    const near = margins.findIndex((margin) => margin <= 0.08);
    const sure = near < 0 ? tokens.length : near;
    assert(sure > 0, "nothing to compare");
    assert.equal(found.slice(0, sure), tokens.slice(0, sure), `${model} ${name}:`);
  }
  await engine.unload();
  return info;
}

export const cases = [
  ...["micro-e2b-Q8_0", "tiny-e2b-Q4_K_M", "tiny-dense-Q4_K_M", "tiny-moe-Q4_K_M"].map((model) => ({
    title: `${model} in a worker gives the golden tokens`,
    body: matchesGoldens,
    prepare: async () => ({ model, prompts: await goldens(model), worker: true }),
  })),
  {
    title: "micro-e2b-Q8_0 on the page's thread gives the golden tokens",
    body: matchesGoldens,
    prepare: async () => ({ model: "micro-e2b-Q8_0", prompts: await goldens("micro-e2b-Q8_0"), worker: false }),
  },
  {
    title: "micro-e2b-Q8_0 without subgroups gives the golden tokens",
    body: matchesGoldens,
    prepare: async () => ({
      model: "micro-e2b-Q8_0",
      prompts: await goldens("micro-e2b-Q8_0"),
      worker: true,
      subgroups: false,
    }),
  },
];
