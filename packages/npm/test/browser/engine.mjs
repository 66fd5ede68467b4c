// What the package must do in a browser with a model: golden tokens, chats, sessions, cancelling, a lost GPU.
//
// What does not need a GPU runs on the CPU, in a browser without WebGPU, as on most machines that run these tests. On the GPU, a load in
// Chromium, on SwiftShader, compiles kernels for half a minute and generates five tokens a second; Firefox, on lavapipe, needs a few
// seconds and generates a hundred. So Chromium shows what only it can: that the self-test passes there, and that a model gives the
// golden tokens with subgroups, which Firefox does not have, and without. Everything else that means the GPU is shown in Firefox. It
// says `backend: "gpu"`, because an emulated GPU is left alone otherwise.

import { readFile } from "node:fs/promises";
import { demo, demoMedia, oneOfEach, prepare as prepareDemo } from "./demo.mjs";
import { pageTest } from "./in-page.mjs";

export { setUp } from "./in-page.mjs";

const CHROMIUM = ["chromium"];
const FIREFOX = ["firefox"];

const testdata = new URL("../../../../testdata/", import.meta.url);

/** A model's greedy tokens by an outside implementation, with the margin of each. */
async function goldens(model) {
  const { prompts } = JSON.parse(await readFile(new URL(`text/${model}.refs.json`, testdata)));
  return prompts.map(({ name, ids, hf_greedy: tokens, hf_greedy_margins: margins }) => ({ name, ids, tokens, margins }));
}

/** In the page: loads a model and compares its tokens with the golden ones. */
async function matchesGoldens({ Engine, ModelStore }, asked, assert) {
  const { model, from, prompts, browser, worker, floor, subgroups, selfTest = false, residency, store, tokens: most = 16 } = asked;
  const name = `${model}.gguf`;
  const file = async () => new File([await (await fetch(`/models/${name}`)).arrayBuffer()], name);
  const SOURCES = {
    url: async () => `/models/${name}`,
    file,
    async opfs() {
      const handle = await (await navigator.storage.getDirectory()).getFileHandle(name, { create: true });
      const writable = await handle.createWritable();
      await writable.write(await file());
      await writable.close();
      return { opfs: name };
    },
    async stored() {
      const store = await ModelStore.open();
      await store.import(await file());
      store.close();
      return { stored: name };
    },
  };
  const progress = [];
  const onProgress = ({ overall }) => progress.push(overall);
  const options = { backend: "gpu", kv: "f32", context: 512, worker, floor, subgroups, selfTest, residency, store, onProgress };
  const engine = await Engine.load(await SOURCES[from ?? "url"](), options);
  const { info } = engine;
  assert.equal(progress, progress.toSorted((a, b) => a - b), "the progress");
  assert.equal(progress.at(-1), 1, "the progress at the end");
  assert.equal(info.fallbacks, []);
  assert.equal(info.warnings, []);
  assert.equal(info.residency, residency ?? "gpu");
  assert(info.wasmMemory < 64 << 20, `${info.wasmMemory} bytes of wasm memory`);
  if (residency) {
    // A reply that is given up while the CPU waits for the GPU has no effect on the next one.
    const reply = engine.generate(prompts[0].ids, { temperature: 0, maxTokens: 9, ignoreEos: true, topLogprobs: 1 });
    for await (const delta of reply) {
      assert(delta.ids.length > 0, "a delta without tokens");
      break;
    }
    const { finishReason, ids, usage, seed } = await reply.result();
    assert.equal([finishReason, usage.promptTokens, usage.generatedTokens], ["cancelled", prompts[0].ids.length, ids.length]);
    assert(ids.length > 0 && seed >= 0, "what was written before the loop was left");
  }
  // Chromium has subgroups, also where wgpu does not know of them; Firefox has none.
  assert.equal(info.gpu.subgroups !== null, browser === "chromium" && subgroups !== false && !floor, "subgroups");
  if (floor) {
    const { largestBinding, largestBuffer, halfPrecision, timestamps } = info.gpu;
    assert.equal([largestBinding, largestBuffer, halfPrecision, timestamps], [128 << 20, 256 << 20, false, false], "the floor");
  }
  assert.equal(info.backend, { kind: "gpu", reason: 'The option `backend` is "gpu".' });
  if (selfTest) {
    const kernels = await engine.kernels();
    assert(kernels.some(({ step }) => step === "decode") && kernels.some(({ step }) => step === "prompt"), "kernels");
    assert(kernels.every(({ kernel, count, rows }) => kernel && count > 0 && rows > 0), JSON.stringify(kernels));
  }
  // Firefox keeps to itself what the GPU is.
  assert(browser === "firefox" || info.gpu.name !== "", "the GPU has no name");
  for (const { name, ids, tokens, margins } of prompts) {
    const count = Math.min(tokens.length, most);
    const reply = engine.generate(ids, { temperature: 0, maxTokens: count, ignoreEos: true });
    const found = (await reply.result()).ids;
    // Where the best two are as near as this, either may be taken, and what follows differs.
    const near = margins.findIndex((margin) => margin <= 0.08);
    const sure = Math.min(near < 0 ? tokens.length : near, count);
    assert(sure > 0, "nothing to compare");
    assert.equal(found.slice(0, sure), tokens.slice(0, sure), `${model} ${name}:`);
  }
  await engine.unload();
}

function golden(title, { model, browsers, quick, ...options }, names) {
  const prepare = async () => {
    const prompts = (await goldens(model)).filter(({ name }) => !names || names.includes(name));
    return { model, prompts, ...options };
  };
  return pageTest({ title, browsers, quick, gpu: [], body: matchesGoldens, prepare });
}

/** In the page: the same on the CPU of a browser without WebGPU, in a worker; then on the page's thread. */
async function matchesOnCpu({ Engine, inspect }, { models, demo, browser }, assert) {
  const load = async (model, options) => {
    const progress = [];
    const onProgress = ({ overall }) => progress.push(overall);
    const engine = await Engine.load(`/${model}.gguf`, { kv: "f32", onProgress, ...options });
    assert.equal(progress, progress.toSorted((a, b) => a - b), "the progress");
    assert.equal(progress.at(-1), 1, "the progress at the end");
    // The page is not isolated, so only one thread may use the engine's memory.
    assert.equal([engine.info.backend.kind, engine.info.backend.threads], ["cpu", 1]);
    assert.equal([engine.info.gpu, engine.info.residency], [null, "cpu"]);
    assert.equal(engine.info.context, options.context ?? 4096);
    assert(engine.info.memory.total > 1e6, JSON.stringify(engine.info.memory));
    return engine;
  };
  for (const { model, prompts } of models) {
    const engine = await load(`models/${model}`, { context: 512 });
    assert(engine.info.backend.reason.startsWith(browser === "firefox" ? "WebGPU is not available" : "The browser found no GPU"), engine.info.backend.reason);
    for (const { name, ids, tokens, margins } of prompts) {
      const reply = engine.generate(ids, { temperature: 0, maxTokens: tokens.length, ignoreEos: true });
      const found = (await reply.result()).ids;
      // Activations of eight bits move logits further than kernels of a GPU do.
      const near = margins.findIndex((margin) => margin <= 0.3);
      const sure = near < 0 ? tokens.length : near;
      assert.equal(found.slice(0, sure), tokens.slice(0, sure), `${model} ${name}:`);
    }
    await engine.unload();
  }
  // The demo model: activations of eight bits decide close calls the other way, as natively.
  const asked = await load("demo/demo", { backend: "cpu", context: 1024 });
  let different = 0;
  for (const { ids, greedy } of demo.prompts) {
    const reply = await asked.generate(ids, { temperature: 0, maxTokens: demo.maxTokens }).result();
    different += JSON.stringify([...reply.ids]) === JSON.stringify(greedy) ? 0 : 1;
  }
  assert(different <= 1, `${different} of ${demo.prompts.length} replies of the demo model differ`);
  await asked.unload();
  const [{ model }] = models;
  const report = await inspect(`/models/${model}.gguf`);
  assert.equal([report.backend.kind, report.residency, report.context], ["cpu", "cpu", 4096]);
  assert(report.memory.needed > 1e6 && report.memory.available === null, JSON.stringify(report.memory));
  await assert.fails(() => Engine.load(`/models/${model}.gguf`, { backend: "gpu" }), "device.unavailable");
  const engine = await load(`models/${model}`, { worker: false });
  const reply = engine.generate("Hello", { temperature: 0, maxTokens: 50, ignoreEos: true });
  for await (const { ids } of reply) {
    assert(ids.length > 0, "a delta without tokens");
    break;
  }
  assert.equal((await reply.result()).finishReason, "cancelled");
  await engine.unload();
}

/** In the page, which is isolated: the same with several threads. */
async function matchesOnThreads({ Engine }, { models }, assert) {
  assert(crossOriginIsolated, "the page is not isolated");
  const load = (options) => Engine.load("/models/tiny-e2b-Q4_K_M.gguf", { backend: "cpu", context: 512, ...options });
  for (const { model, prompts } of models) {
    const engine = await Engine.load(`/models/${model}.gguf`, { backend: "cpu", threads: 3, kv: "f32", context: 512 });
    assert.equal(engine.info.backend.threads, 3, "threads");
    for (const { name, ids, tokens, margins } of prompts) {
      const found = (await engine.generate(ids, { temperature: 0, maxTokens: tokens.length, ignoreEos: true }).result()).ids;
      const near = margins.findIndex((margin) => margin <= 0.3);
      const sure = near < 0 ? tokens.length : near;
      assert.equal(found.slice(0, sure), tokens.slice(0, sure), `${model} ${name}:`);
    }
    await engine.unload();
  }
  // The page's own thread may not wait for others.
  for (const [options, expected] of [[{ worker: false }, 1], [{ threads: 1 }, 1], [{ threads: 2, worker: "blob" }, 2]]) {
    const engine = await load(options);
    assert.equal(engine.info.backend.threads, expected, JSON.stringify(options));
    await engine.unload();
  }
  for (const threads of [0, 1.5, 65]) {
    await assert.fails(() => load({ threads }), "option.out_of_range");
  }
  // A worker that computes still reads that its reply is cancelled.
  const engine = await load({ threads: 2 });
  const reply = engine.generate("Hello", { temperature: 0, maxTokens: 500, ignoreEos: true });
  for await (const delta of reply) {
    assert(delta.ids.length > 0, "a delta without tokens");
    break;
  }
  const { finishReason, ids } = await reply.result();
  assert.equal(finishReason, "cancelled");
  assert(ids.length < 250, `${ids.length} tokens were written before the reply was cancelled`);
  await engine.unload();
  // Where the script of a thread is missing, one thread computes.
  const { Engine: Other } = await import("/without-threads/index.js");
  const alone = await Other.load("/models/micro-e2b-Q8_0.gguf", { backend: "cpu", threads: 2, context: 64 });
  assert.equal(alone.info.backend.threads, 1, "without the script");
  assert.equal((await alone.generate("Hello", { temperature: 0, maxTokens: 3, ignoreEos: true }).result()).ids.length, 3);
  await alone.unload();
}

/** The family members with the shorter of their prompts. */
async function everyMember() {
  const names = ["micro-e2b-Q8_0", "tiny-e2b-Q4_K_M", "tiny-dense-Q4_K_M", "tiny-moe-Q4_K_M"];
  const short = async (model) => ({ model, prompts: (await goldens(model)).filter(({ name }) => ["chat", "short"].includes(name)) });
  return { models: await Promise.all(names.map(short)) };
}

export const tests = [
  pageTest({
    title: "every family member and the demo model give the golden tokens on the CPU, which computes where there is no WebGPU",
    webgpu: false,
    body: matchesOnCpu,
    expected: /WebGPU|adapter/i,
    async prepare() {
      const { prompts, maxTokens } = await prepareDemo();
      return { ...(await everyMember()), demo: { prompts: oneOfEach(prompts), maxTokens } };
    },
  }),
  pageTest({
    title: "every family member gives the golden tokens on the CPU with threads, on a page that is isolated",
    // One thread computes in Firefox.
    browsers: CHROMIUM,
    webgpu: false,
    path: "/?isolated",
    // The browser says that the script which one case lacks is not there.
    expected: /404|WebGPU|adapter/i,
    body: matchesOnThreads,
    prepare: everyMember,
  }),
  pageTest({
    title: "an examination of the GPU, without a model",
    browsers: FIREFOX,
    gpu: [],
    async body({ examine }, _given, assert) {
      const { gpu, selfTests, fallbacks, bandwidth } = await examine();
      assert(selfTests.length > 10 && selfTests.every(({ name, passed }) => name && passed), JSON.stringify(selfTests));
      assert.equal(fallbacks, []);
      assert(bandwidth > 1e6 && gpu.largestBuffer >= 256 << 20, JSON.stringify({ gpu, bandwidth }));
      await assert.fails(() => examine({ signal: AbortSignal.abort() }), "cancelled");
      await assert.fails(() => examine({ context: 1 }), "option.unknown");
    },
  }),
  pageTest({
    title: "a page that is loaded again chooses other seeds",
    browsers: FIREFOX,
    webgpu: false,
    loads: 2,
    async body({ Engine }) {
      const engine = await Engine.load("/models/micro-e2b-Q8_0.gguf", { context: 64, selfTest: false });
      const seeds = [];
      for (const from of [engine, engine.session()]) {
        seeds.push((await from.generate("Hello", { temperature: 1, maxTokens: 1, ignoreEos: true }).result()).seed);
      }
      await engine.unload();
      return seeds;
    },
    check(loads) {
      const seeds = loads.flat();
      if (seeds.length !== 4 || new Set(seeds).size !== 4 || !seeds.every((seed) => Number.isSafeInteger(seed))) {
        throw new Error(`the seeds of two loads are ${JSON.stringify(loads)}`);
      }
    },
  }),
  golden(
    "E2B in a worker, after a self-test with subgroups, gives the golden tokens",
    { browsers: CHROMIUM, model: "micro-e2b-Q8_0", selfTest: true },
    ["chat", "short"],
  ),
  golden(
    "E2B without subgroups, though there are some, gives the golden tokens",
    { browsers: CHROMIUM, model: "micro-e2b-Q8_0", subgroups: false, tokens: 8 },
    ["short"],
  ),
  golden("E2B in a worker, after a self-test, gives the golden tokens", { browsers: FIREFOX, quick: true, model: "micro-e2b-Q8_0", selfTest: true, tokens: 48 }),
  golden(
    "a dense model from a file, on the page's thread, gives the golden tokens",
    { browsers: FIREFOX, model: "tiny-dense-Q4_K_M", from: "file", worker: false },
    ["chat", "short"],
  ),
  golden(
    "experts in a worker made from a blob give the golden tokens",
    { browsers: FIREFOX, model: "tiny-moe-Q4_K_M", worker: "blob" },
    ["mixed", "short"],
  ),
  golden(
    "E2B kept in the browser's store, with tables read by rows, gives the golden tokens",
    { browsers: FIREFOX, model: "micro-e2b-Q8_0", residency: "rows", store: true },
    ["short"],
  ),
  golden(
    "experts that come and go give the golden tokens",
    { browsers: FIREFOX, model: "tiny-moe-Q4_K_M", residency: "paged", tokens: 8 },
    ["short"],
  ),
  golden(
    "E2B from the browser's storage gives the golden tokens",
    { browsers: FIREFOX, model: "micro-e2b-Q8_0", from: "opfs" },
    ["chat", "short"],
  ),
  golden(
    "E2B with no more of the GPU than WebGPU promises, from the store, gives the golden tokens",
    { browsers: FIREFOX, model: "micro-e2b-Q8_0", from: "stored", floor: true },
    ["chat", "short"],
  ),
  golden(
    "experts with no more of the GPU than WebGPU promises give the golden tokens",
    { browsers: FIREFOX, model: "tiny-moe-Q4_K_M", floor: true },
    ["short"],
  ),
  demo,
  demoMedia,
  pageTest({
    title: "chat, sessions, completions, tokens, cancelling and unloading",
    browsers: FIREFOX,
    webgpu: false,
    async body({ Engine, Reply }, _given, assert) {
      const events = [];
      const engine = await Engine.load("/models/tiny-e2b-Q4_K_M.gguf", {
        context: 512,
        onProgress: (event) => events.push(event),
      });
      for (const status of ["download", "upload", "compile"]) {
        const mine = events.filter((event) => event.status === status);
        assert(mine.length > 0, `no event of ${status}`);
        assert.equal(mine.at(-1).progress, 1, status);
        assert(
          mine.every(({ file, loaded, total, progress }, index) =>
            file === "tiny-e2b-Q4_K_M.gguf" && progress === loaded / total && loaded >= (mine[index - 1]?.loaded ?? 0)),
          `events of ${status}: ${JSON.stringify(mine)}`,
        );
      }
      assert.equal([engine.info.architecture, engine.info.context, engine.info.layers], ["gemma4", 512, 8]);

      // Tokens and prompts.
      const ids = await engine.tokenize("Hello there!", { bos: true });
      assert(ids instanceof Uint32Array && ids[0] === 2, "no <bos>");
      assert.equal(await engine.detokenize(ids, { special: false }), "Hello there!");
      const question = [{ role: "user", content: "What is the capital of France? Answer in one word." }];
      const greedy = { temperature: 0, think: false };
      const prompt = await engine.render(question, { think: false });
      assert.equal(prompt, `<bos><|turn>user\n${question[0].content}<turn|>\n<|turn>model\n`);

      // A chat, as deltas and as a whole.
      let text = "";
      const seen = [];
      const reply = engine.chat(question, greedy);
      assert(reply instanceof Reply, "not a reply");
      for await (const delta of reply) {
        text += delta.text;
        seen.push(...delta.ids);
      }
      assert.equal(text, "Paris");
      const whole = await reply.result();
      assert.equal([whole.text, whole.finishReason, whole.toolCalls], ["Paris", "stop", []]);
      assert.equal(whole.ids.slice(0, seen.length), seen);
      assert.equal(whole.usage.reusedTokens, 0);
      const again = await engine.chat(question, greedy).result();
      assert.equal(again.ids, whole.ids);
      assert(again.usage.reusedTokens > 0, "nothing was reused");

      // Reading a prompt and writing are timed apart.
      const words = await engine.tokenize("Never trust a cloud. ".repeat(40));
      const { timings } = await engine.generate(words, { temperature: 0, maxTokens: 4, ignoreEos: true }).result();
      assert(timings.promptMs > 0 && timings.generateMs > 0, `a prompt of ${words.length} tokens: ${JSON.stringify(timings)}`);

      // Sessions remember, each for itself.
      const session = engine.session();
      assert.equal((await session.send(question[0].content, greedy).result()).text, "Paris");
      assert.equal(await session.messages(), [question[0], { role: "assistant", content: "Paris" }]);
      await session.clear();
      assert.equal(await session.messages(), []);
      const writing = session.send(question[0].content, { temperature: 0, maxTokens: 400, ignoreEos: true });
      await writing.next();
      const closed = assert.fails(() => writing.result(), "cancelled");
      await session.close();
      await closed;
      await assert.fails(() => session.send("Hello").result(), "session.closed");
      await assert.fails(() => session.messages(), "session.closed");
      await engine.session().close();

      // Replies without a seed differ, in one session and in several; each can be repeated with the seed that it tells.
      const varied = { temperature: 3, topK: 0, topP: 1, maxTokens: 6, ignoreEos: true };
      const other = engine.session();
      const unseeded = [];
      for (const from of [engine, engine, other]) unseeded.push(await from.generate("Hello", varied).result());
      assert.equal(new Set(unseeded.map((one) => one.seed)).size, 3, "seeds");
      assert(unseeded.every(({ seed }) => Number.isSafeInteger(seed) && seed > 0), JSON.stringify(unseeded.map((one) => one.seed)));
      // Seeds of sessions that began at 0 would be those of every page.
      const everyPage = Number(0x9e3779b97f4a7c15n & (2n ** 53n - 1n));
      assert(unseeded.every(({ seed }) => seed !== everyPage), "a session began at 0");
      for (const { seed, ids } of unseeded) {
        assert.equal((await other.generate("Hello", { ...varied, seed }).result()).ids, ids);
      }
      await other.close();

      // A reply that is given up early stops computing, and the next one is not affected. How much was computed shows in how much
      // of the whole reply, given as a prompt, the engine has read already.
      const long = { temperature: 0, maxTokens: 100, ignoreEos: true };
      const hello = await engine.tokenize("Hello", { bos: true });
      const all = [...hello, ...(await engine.generate(hello, long).result()).ids];
      const read = async () => (await engine.generate(all, { temperature: 0, maxTokens: 1 }).result()).usage.reusedTokens;
      assert(await read() > 90, "a whole reply is not read");
      await engine.generate("Something else", { temperature: 0, maxTokens: 1 }).result();
      let count = 0;
      for await (const delta of engine.generate(hello, long)) {
        count += delta.ids.length;
        if (count >= 3) break;
      }
      const left = await read();
      assert(left >= count && left < 90, `${left} tokens were read of a reply that was left after ${count}`);
      await engine.generate("Something else", { temperature: 0, maxTokens: 1 }).result();
      const controller = new AbortController();
      const aborted = engine.generate(hello, { ...long, signal: controller.signal });
      await aborted.next();
      controller.abort();
      const error = await assert.fails(() => aborted.result(), "cancelled");
      assert.equal(error.name, "AbortError");
      assert(await read() < 90, "a reply that was aborted went on");
      assert.equal((await engine.chat(question, greedy).result()).text, "Paris");
      await assert.fails(() => engine.chat(question, { signal: AbortSignal.abort() }).result(), "cancelled");
      // Several at once wait for each other.
      const both = [engine.chat(question, greedy), engine.chat(question, greedy)];
      assert.equal((await Promise.all(both.map((one) => one.result()))).map((one) => one.text), ["Paris", "Paris"]);

      // OpenAI's shape.
      const request = { messages: question, temperature: 0, reasoning_effort: "none" };
      const completion = await engine.chat.completions.create({ ...request, logprobs: true, top_logprobs: 2 });
      const [choice] = completion.choices;
      assert.equal([choice.message.content, choice.finish_reason], ["Paris", "stop"]);
      assert.equal(completion.usage.total_tokens, completion.usage.prompt_tokens + completion.usage.completion_tokens);
      assert(choice.logprobs.content[0].logprob <= 0 && choice.logprobs.content[0].top_logprobs.length === 2, "logprobs");
      const chunks = [];
      const stream = { ...request, stream: true, stream_options: { include_usage: true } };
      for await (const chunk of await engine.chat.completions.create(stream)) {
        chunks.push(chunk);
      }
      assert.equal(chunks.map((chunk) => chunk.choices[0]?.delta.content ?? "").join(""), "Paris");
      assert.equal(chunks.at(-2).choices[0].finish_reason, "stop");
      assert(chunks.at(-1).usage.completion_tokens > 0 && chunks.at(-1).timings.generate_ms >= 0, "usage");

      // Errors have codes.
      await assert.fails(() => engine.chat(question, { temperatur: 1 }).result(), "option.unknown");
      await assert.fails(() => engine.chat(question, { topP: 2 }).result(), "option.out_of_range");
      await assert.fails(() => engine.chat([{ content: "?" }]).result(), "chat.missing_field");
      await assert.fails(() => engine.generate(new Array(600).fill(2)).result(), "context.overflow");
      await assert.fails(() => engine.generate([999_999]).result(), "input.unknown_token");
      await assert.fails(() => engine.generate([]).result(), "input.empty");

      // What is under way when it is unloaded ends.
      const last = engine.generate("Hello", long);
      await last.next();
      const ended = assert.fails(() => last.result(), "cancelled");
      await engine.unload();
      await ended;
      await assert.fails(() => engine.tokenize("Hello"), "engine.unloaded");
    },
  }),
  pageTest({
    title: "replies wait while the page is hidden, where that is asked for",
    browsers: FIREFOX,
    gpu: [],
    async body({ Engine }, _given, assert) {
      let visibility = "visible";
      Object.defineProperty(document, "visibilityState", { get: () => visibility });
      const show = (how) => {
        visibility = how;
        document.dispatchEvent(new Event("visibilitychange"));
      };
      const options = { backend: "gpu", context: 128, selfTest: false, whenHidden: "pause" };
      const engine = await Engine.load("/models/micro-e2b-Q8_0.gguf", options);
      const long = { temperature: 0, maxTokens: 100, ignoreEos: true };
      const expected = (await engine.generate("Hello", long).result()).ids;
      const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));
      /** Waits until no more tokens come: the reply is held back, or over. */
      const quiet = async (seen) => {
        for (let before = -1; before !== seen.length; await pause(200)) before = seen.length;
      };
      const follow = (reply) => {
        const seen = [];
        void (async () => {
          for await (const delta of reply) seen.push(...delta.ids);
        })().catch(() => {});
        return seen;
      };

      // Hidden in the middle, it stops; shown again, it goes on as if nothing had been.
      const reply = engine.generate("Hello", long);
      await reply.next();
      show("hidden");
      const seen = follow(reply);
      await quiet(seen);
      assert(seen.length < 90, `${seen.length} tokens came while hidden`);
      show("visible");
      assert.equal((await reply.result()).ids, expected);

      // Asked while hidden, it begins when the page is shown; who gives up meanwhile is not kept waiting.
      show("hidden");
      const given = engine.generate("Hello", long);
      const nothing = follow(given);
      await quiet(nothing);
      assert.equal(nothing, [], "tokens while hidden");
      given.cancel();
      assert.equal([(await given.result()).finishReason, (await given.result()).ids], ["cancelled", []]);
      const next = engine.generate("Hello", long);
      show("visible");
      assert.equal((await next.result()).ids, expected);
      await engine.unload();
      show("hidden");
      await assert.fails(() => Engine.load("/models/micro-e2b-Q8_0.gguf", { whenHidden: "sleep" }), "option.wrong_type");
    },
  }),
  pageTest({
    title: "a reply survives the loss of the GPU",
    browsers: FIREFOX,
    gpu: [],
    async body({ Engine }, _given, assert) {
      const { requestDevice } = GPUAdapter.prototype;
      const devices = [];
      GPUAdapter.prototype.requestDevice = async function (descriptor) {
        const device = await requestDevice.call(this, descriptor);
        devices.push(device);
        return device;
      };
      const engine = await Engine.load("/models/micro-e2b-Q8_0.gguf", { backend: "gpu", context: 128, worker: false, selfTest: false });
      const options = { temperature: 0, maxTokens: 24, ignoreEos: true };
      const expected = (await engine.generate("Hello", options).result()).ids;
      const reply = engine.generate("Hello", options);
      for (let count = 0; count < 5; count += 1) {
        await reply.next();
      }
      assert.equal(devices.length, 1, "devices before");
      devices[0].destroy();
      const found = (await reply.result()).ids;
      assert.equal(found, expected);
      assert.equal(devices.length, 2, "devices after");
      await engine.unload();
    },
  }),
  pageTest({
    title: "a GPU that is lost twice hands the reply and the conversations over to the CPU",
    browsers: FIREFOX,
    gpu: [],
    async body({ Engine }, _given, assert) {
      // As if it were none that is emulated.
      Object.defineProperty(GPUAdapterInfo.prototype, "isFallbackAdapter", { get: () => false });
      const { requestDevice } = GPUAdapter.prototype;
      const devices = [];
      GPUAdapter.prototype.requestDevice = async function (descriptor) {
        const device = await requestDevice.call(this, descriptor);
        devices.push(device);
        return device;
      };
      const moved = [];
      const onBackend = (backend) => moved.push(backend);
      const engine = await Engine.load("/models/micro-e2b-Q8_0.gguf", { context: 512, worker: false, selfTest: false, onBackend });
      assert.equal(engine.info.backend, { kind: "gpu", reason: "The browser offers a GPU." });
      const options = { temperature: 0, maxTokens: 24, ignoreEos: true, think: false };
      const session = engine.session();
      const first = await session.send("What is the capital of France?", options).result();
      const reply = session.send("And what is there to be seen?", options);
      const told = [];
      for await (const { ids } of reply) {
        told.push(...ids);
        if (devices.length < 3 && told.length >= 5 * devices.length) {
          devices.at(-1).destroy();
        }
      }
      const whole = await reply.result();
      assert.equal([whole.ids, whole.finishReason, whole.usage.generatedTokens], [told, "length", 24]);
      assert.equal(devices.length, 2, "devices");
      const { backend, gpu } = engine.info;
      assert.equal([backend, gpu], [{ kind: "cpu", reason: "The GPU stopped working twice within a minute.", threads: 1 }, null]);
      assert.equal(moved, [backend]);
      // The conversation goes on, and the CPU writes what a model that was on it all the time writes.
      const messages = await session.messages();
      assert.equal(messages.map(({ role }) => role), ["user", "assistant", "user", "assistant"]);
      assert.equal(messages[1].content, first.text);
      const here = await Engine.load("/models/micro-e2b-Q8_0.gguf", { backend: "cpu", context: 512 });
      const question = [...messages, { role: "user", content: "Thanks" }];
      const expected = await here.chat(question, options).result();
      assert.equal((await session.send("Thanks", options).result()).ids, expected.ids);
      await here.unload();
      await engine.unload();
    },
    expected: /lost|destroyed/i,
  }),
  pageTest({
    title: "the names of the system before this one",
    browsers: FIREFOX,
    webgpu: false,
    async body({ Model }, { origin }, assert) {
      const url = `${origin}/models/micro-e2b-Q8_0.gguf`;
      const bytes = new Uint8Array(await (await fetch(url)).arrayBuffer());
      const read = (offset, length) => bytes.subarray(offset, offset + length);
      const model = await Model.loadFromOpfsTextOnly(read, bytes.length);
      assert.equal([model.maxContext, model.vocabSize], [512, 2048]);
      const write = async (text, count) => {
        let next;
        for (const id of model.encode(text)) {
          next = await model.step(id);
        }
        const written = [next];
        while (written.length < count) {
          written.push(await model.step(written.at(-1)));
        }
        return written.map((id) => model.tokenStr(id)).join("");
      };
      const first = await write("<bos>Hello", 6);
      assert.equal(first, " there! My name is");
      model.reset();
      model.setSampling({ temperature: 0, top_k: 40, top_p: 0.9, repetition_penalty: 1.0, seed: 1 });
      assert.equal(await write("<bos>Hello", 6), first);
      const prompt = model.renderChat([{ role: "user", content: "Hi" }], true);
      assert.equal(prompt, "<bos><|turn>user\nHi<turn|>\n<|turn>model\n");
      assert.equal(model.isEos(model.encode("<turn|>")[0]), true);
      model.free();
    },
  }),
];
