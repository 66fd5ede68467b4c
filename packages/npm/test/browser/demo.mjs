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

/** Questions about images and recordings, with these files as data URLs. */
export async function prepareMedia(...names) {
  const { media } = JSON.parse(await readFile(new URL("testdata/demo/demo.media.json", root)));
  return Promise.all(
    names.map(async (name) => {
      const question = media.find(({ file }) => file === name);
      const url = `data:;base64,${(await readFile(new URL(`testdata/demo/${name}`, root))).toString("base64")}`;
      return { ...question, url, promptTokens: question.ids.length, imageBudget: question.rows > 70 ? 280 : 70 };
    }),
  );
}

/** In the page. */
async function writesTheSame({ Engine }, { prompts, maxTokens, image }, assert) {
  const engine = await Engine.load("/demo/demo.gguf", { backend: "gpu", kv: "f32", context: 1024, selfTest: false });
  for (const { number, task, prompt, ids, greedy, llama_cpp: llamaCpp } of prompts) {
    const place = `prompt ${number}, ${task},`;
    assert.equal([...(await engine.tokenize(prompt, { bos: true }))], ids, `${place} tokens of the prompt:`);
    const reply = await engine.generate(ids, { temperature: 0, maxTokens }).result();
    assert.equal([...reply.ids], greedy, `${place} transformers:`);
    assert.equal([...reply.ids], llamaCpp, `${place} llama.cpp:`);
  }
  const { prompt, url, imageBudget, greedy, promptTokens } = image;
  const seen = engine.chat([{ role: "user", content: prompt, images: [url] }], { think: false, temperature: 0, imageBudget });
  const { ids, usage } = await seen.result();
  assert.equal([usage.promptTokens, ids], [promptTokens, greedy], "an image:");
  await engine.unload();
}

export const demo = pageTest({
  title: "the demo model, asked one prompt of each task and shown an image, writes what transformers and llama.cpp write",
  // Chromium would take minutes; there the CPU is asked.
  browsers: ["firefox"],
  gpu: [],
  body: writesTheSame,
  async prepare() {
    const { prompts, maxTokens } = await prepare();
    const [image] = await prepareMedia("demo-image-2.png");
    return { prompts: oneOfEach(prompts), maxTokens, image };
  },
});

/** In the page. Images and sounds come in different ways; how each is decoded is tested in media.mjs. */
async function seesAndHears({ Engine }, { small, large, sound }, assert) {
  const engine = await Engine.load("/demo/demo.gguf", { backend: "cpu", kv: "f32", context: 1024 });
  assert.equal(engine.info.media.image && engine.info.media.audio, true, "media");
  const options = { think: false, temperature: 0 };
  const blob = async ({ url }) => (await fetch(url)).blob();
  const told = [];
  const ask = (messages, more) => engine.chat(messages, { ...options, onEncode: (event) => told.push(event), ...more });

  const controller = new AbortController();
  const question = { role: "user", content: large.prompt, images: [await createImageBitmap(await blob(large))] };
  const cancelled = ask([question], { imageBudget: large.imageBudget, signal: controller.signal, onEncode: () => controller.abort() });
  await assert.fails(() => cancelled.result(), "cancelled");

  const first = await ask([question], { imageBudget: large.imageBudget }).result();
  assert.equal([first.usage.promptTokens, first.ids], [large.promptTokens, large.greedy], "the large image:");
  assert.equal([told[0].fraction, told.at(-1)], [0, { medium: "image", index: 0, count: 1, fraction: 1 }], "progress:");
  const fractions = told.map(({ fraction }) => fraction);
  assert.equal(fractions, fractions.toSorted((a, b) => a - b), "progress:");

  // The second turn reads neither the image nor the first turn again.
  told.length = 0;
  const turns = [question, { role: "assistant", content: first.text }, { role: "user", content: small.prompt, images: [await blob(small)] }];
  const { usage } = await ask(turns, { imageBudget: large.imageBudget }).result();
  assert(usage.reusedTokens >= large.promptTokens, `${usage.reusedTokens} tokens were reused`);
  assert.equal(told.filter(({ index }) => index === 0).map(({ fraction }) => fraction), [0, 1], "progress of an image that was encoded before:");

  const alone = await ask([turns[2]], { imageBudget: small.imageBudget }).result();
  assert.equal([alone.usage.promptTokens, alone.ids], [small.promptTokens, small.greedy], "the small image:");

  const audio = { type: "input_audio", input_audio: { data: sound.url.split(",")[1], format: "wav" } };
  const content = [audio, { type: "text", text: sound.prompt }];
  const request = { messages: [{ role: "user", content }], temperature: 0, reasoning_effort: "none" };
  const completion = await engine.chat.completions.create(request);
  assert.equal([completion.usage.prompt_tokens, completion.choices[0].message.content], [sound.promptTokens, sound.wanted], "the sound:");

  const session = engine.session();
  const { ids } = await session.send({ role: "user", content: sound.prompt, audio: [sound.url] }, options).result();
  assert.equal(ids, sound.greedy, "the sound in a session:");
  assert.equal((await session.messages())[0].audio, [sound.url], "the message:");

  await assert.fails(() => ask([{ role: "user", content: "Hm?", images: ["data:,no image"] }]).result(), "media.image.unknown");
  await assert.fails(() => ask([{ role: "user", content: "Hm?", audio: [new Float32Array(9)] }]).result(), "media.sound.too_short");
  await engine.unload();
}

export const demoMedia = pageTest({
  title: "the demo model, shown images and told a word, writes on the CPU what transformers writes",
  webgpu: false,
  body: seesAndHears,
  async prepare() {
    const [small, large, sound] = await prepareMedia("demo-image-0.png", "demo-image-4.png", "demo-audio-5.wav");
    return { small, large, sound };
  },
});
