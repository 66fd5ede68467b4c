// What the package must do in a browser. Browsers without a GPU take their time to make kernels, so models are loaded as
// seldom as possible: what one loaded model can show is one case.

import { rmSync } from "node:fs";
import { cp, mkdir, mkdtemp, readFile, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { demo } from "./demo.mjs";

const testdata = new URL("../../../../testdata/", import.meta.url);

/** A model's greedy tokens by an outside implementation, with the margin of each. */
async function goldens(model) {
  const { prompts } = JSON.parse(await readFile(new URL(`text/${model}.refs.json`, testdata)));
  return prompts.map(({ name, ids, hf_greedy: tokens, hf_greedy_margins: margins }) => ({ name, ids, tokens, margins }));
}

/** In the page: loads a model and compares its tokens with the golden ones. */
async function matchesGoldens({ Engine, ModelStore }, asked, assert) {
  const { model, from, prompts, browser, worker, floor, subgroups, selfTest, residency, store } = asked;
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
      // Where pages share their storage, another case may have kept it.
      await store.import(await file(), { replace: true });
      store.close();
      return { stored: name };
    },
  };
  const options = { kv: "f32", context: 512, worker, floor, subgroups, selfTest, residency, store };
  const engine = await Engine.load(await SOURCES[from ?? "url"](), options);
  const { info } = engine;
  assert.equal(info.fallbacks, []);
  assert.equal(info.warnings, []);
  assert.equal(info.residency, residency ?? "gpu");
  assert(info.wasmMemory < 64 << 20, `${info.wasmMemory} bytes of wasm memory`);
  if (residency) {
    // Whoever gives up while the host waits for the GPU leaves nothing behind.
    const reply = engine.generate(prompts[0].ids, { temperature: 0, maxTokens: 9, ignoreEos: true, topLogprobs: 1 });
    for await (const delta of reply) {
      assert(delta.ids.length > 0, "a delta without tokens");
      break;
    }
  }
  // Chromium has subgroups, also where wgpu does not know of them; Firefox has none.
  assert.equal(info.gpu.subgroups !== null, browser === "chromium" && subgroups !== false && !floor, "subgroups");
  if (floor) {
    const { largestBinding, largestBuffer, halfPrecision, timestamps } = info.gpu;
    assert.equal([largestBinding, largestBuffer, halfPrecision, timestamps], [128 << 20, 256 << 20, false, false], "the floor");
  }
  // Firefox keeps to itself what the GPU is.
  assert(browser === "firefox" || info.gpu.name !== "", "the GPU has no name");
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
}

function golden(title, { model, ...options }, names) {
  const prepare = async () => {
    const prompts = (await goldens(model)).filter(({ name }) => !names || names.includes(name));
    return { model, prompts, ...options };
  };
  return { title, body: matchesGoldens, prepare };
}

/** Builds the pages in `vite/` as their author would, with the package installed; gives the folder of the result. */
async function buildWithVite() {
  const { build } = await import("vite");
  const at = (path) => fileURLToPath(new URL(path, import.meta.url));
  const root = await mkdtemp(join(tmpdir(), "rullama-vite-"));
  process.on("exit", () => rmSync(root, { recursive: true, force: true }));
  await cp(at("vite"), root, { recursive: true });
  await mkdir(join(root, "node_modules"));
  await symlink(at("../.."), join(root, "node_modules/rullama"));
  const input = ["index.html", "own-worker.html"].map((page) => join(root, page));
  await build({ root, configFile: false, base: "/vite/", logLevel: "error", build: { rolldownOptions: { input } } });
  return join(root, "dist");
}

export const cases = [
  golden("E2B in a worker, after a self-test, gives the golden tokens", { model: "micro-e2b-Q8_0" }),
  golden(
    "a dense model from a file, on the page's thread, gives the golden tokens",
    { model: "tiny-dense-Q4_K_M", from: "file", worker: false, selfTest: false },
    ["chat", "short"],
  ),
  golden(
    "experts in a worker made from a blob give the golden tokens",
    { model: "tiny-moe-Q4_K_M", worker: "blob", selfTest: false },
    ["mixed", "short"],
  ),
  golden(
    "E2B kept in the browser's store, with tables read by rows, gives the golden tokens",
    { model: "micro-e2b-Q8_0", residency: "rows", store: true, selfTest: false },
    ["short"],
  ),
  {
    title: "a stored model is checked while it is read, and options of the store are looked at",
    async body({ Engine, ModelStore }, { origin }, assert) {
      const url = `${origin}/models/micro-e2b-Q8_0.gguf`;
      const store = await ModelStore.open();
      const { name, bytes } = await store.download(url, { name: "damaged" });
      const folder = await (await navigator.storage.getDirectory()).getDirectoryHandle("rullama");
      const stream = await (await folder.getFileHandle("damaged.file")).createWritable({ keepExistingData: true });
      await stream.write({ type: "write", position: bytes - 1000, data: new Uint8Array(500).fill(77) });
      await stream.close();
      const seen = [];
      const onProgress = ({ status, file, loaded, total }) => seen.push({ status, file, loaded, total });
      const options = { selfTest: false, residency: "gpu", onProgress };
      const error = await assert.fails(() => Engine.load({ stored: name }, options), "storage.corrupt");
      assert(error.details.damaged?.[0]?.offset <= bytes - 1000, JSON.stringify(error.details));
      const checked = seen.filter(({ status }) => status === "verify").at(-1);
      assert(checked?.file === name && checked.total === bytes && checked.loaded < bytes, JSON.stringify(checked));
      // By the address, under the same name: found, and as damaged as it is.
      await assert.fails(() => Engine.load(url, { ...options, store: { name } }), "storage.corrupt");
      await store.delete(name);

      await assert.fails(() => Engine.load(url, { store: { sha256: "1" } }), "option.wrong_type");
      await assert.fails(() => Engine.load(url, { store: { sha512: "1" } }), "option.unknown");
      const split = `${origin}/models/micro-00001-of-00002.gguf`;
      await assert.fails(() => Engine.load(split, { store: { sha256: "0".repeat(64) } }), "option.wrong_type");
      await assert.fails(() => store.download("http://["), "option.wrong_type");
      store.close();
    },
  },
  golden(
    "experts that come and go give the golden tokens",
    { model: "tiny-moe-Q4_K_M", residency: "paged", selfTest: false },
    ["short"],
  ),
  golden(
    "E2B from the browser's storage, without subgroups, gives the golden tokens",
    { model: "micro-e2b-Q8_0", from: "opfs", subgroups: false, selfTest: false },
    ["chat", "short"],
  ),
  golden(
    "E2B with no more of the GPU than WebGPU promises, after a self-test, gives the golden tokens",
    { model: "micro-e2b-Q8_0", from: "stored", floor: true },
    ["chat", "short"],
  ),
  golden(
    "experts with no more of the GPU than WebGPU promises give the golden tokens",
    { model: "tiny-moe-Q4_K_M", floor: true, selfTest: false },
    ["short"],
  ),
  ...demo,
  {
    title: "chat, sessions, completions, tokens, cancelling and unloading",
    async body({ Engine, Reply }, _given, assert) {
      const events = [];
      const engine = await Engine.load("/models/tiny-e2b-Q4_K_M.gguf", {
        context: 512,
        selfTest: false,
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

      // A prompt takes its time, and the reply that follows another.
      const words = await engine.tokenize("Never trust a cloud. ".repeat(40));
      const { timings } = await engine.generate(words, { temperature: 0, maxTokens: 20, ignoreEos: true }).result();
      const pace = timings.generateMs / 19;
      assert(timings.promptMs > pace, `a prompt of ${words.length} tokens: ${JSON.stringify(timings)}`);
      const kernels = await engine.kernels();
      assert(kernels.some(({ step }) => step === "decode") && kernels.some(({ step }) => step === "prompt"), "kernels");
      assert(kernels.every(({ kernel, count, rows }) => kernel && count > 0 && rows > 0), JSON.stringify(kernels));

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

      // What is left early ends, and the next reply is as good as ever.
      const long = { temperature: 0, maxTokens: 400, ignoreEos: true };
      let count = 0;
      for await (const delta of engine.generate("Hello", long)) {
        count += delta.ids.length;
        if (count >= 3) break;
      }
      const abandoned = performance.now();
      const controller = new AbortController();
      const aborted = engine.generate("Hello", { ...long, signal: controller.signal });
      await aborted.next();
      controller.abort();
      const error = await assert.fails(() => aborted.result(), "cancelled");
      assert.equal(error.name, "AbortError");
      assert.equal((await engine.chat(question, greedy).result()).text, "Paris");
      // Two replies of 400 tokens were given up; had they been written to the end, they would have taken this long.
      const hurry = performance.now() - abandoned;
      assert(hurry < 400 * pace, `${hurry} ms, at ${pace} ms a token`);
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
  },
  {
    title: "an examination of the GPU, without a model",
    async body({ examine }, { browser }, assert) {
      const { gpu, selfTests, fallbacks, bandwidth } = await examine();
      assert(selfTests.length > 10 && selfTests.every(({ name, passed }) => name && passed), JSON.stringify(selfTests));
      assert.equal(fallbacks, []);
      assert(bandwidth > 1e6 && gpu.largestBuffer >= 256 << 20, JSON.stringify({ gpu, bandwidth }));
      assert(browser === "firefox" || gpu.name !== "", "the GPU has no name");
      await assert.fails(() => examine({ signal: AbortSignal.abort() }), "cancelled");
      await assert.fails(() => examine({ context: 1 }), "option.unknown");
    },
  },
  {
    title: "every kind of source, and the errors of servers",
    async body({ Engine }, { origin }, assert) {
      // Up to the first byte that is missing, loading does not need a GPU's slow kernels; then it is cancelled.
      const reaches = async (source, options = {}) => {
        const controller = new AbortController();
        let info;
        const onProgress = ({ status, loaded }) => {
          if (status === "upload" && loaded > 0) {
            info = true;
            controller.abort();
          }
        };
        const load = () =>
          Engine.load(source, { selfTest: false, context: 64, signal: controller.signal, onProgress, ...options });
        await assert.fails(load, "cancelled");
        assert(info, "nothing was uploaded");
      };
      const url = `${origin}/models/micro-e2b-Q8_0.gguf`;
      const bytes = new Uint8Array(await (await fetch(url)).arrayBuffer());
      await reaches("models/micro-e2b-Q8_0.gguf");
      await reaches(new URL(url));
      await reaches([url], { worker: false });
      await reaches(bytes);
      await reaches(bytes.buffer, { worker: false });
      await reaches(new Blob([bytes]));
      await reaches(new File([bytes], "model.gguf"), { worker: false });
      const reads = [];
      await reaches({
        length: bytes.length,
        read: async (offset, length) => {
          reads.push(length);
          return bytes.slice(offset, offset + length);
        },
      });
      assert(reads.length > 0 && Math.max(...reads) <= 16 << 20, "what was read");
      await reaches({ length: bytes.length, read: (offset, length) => bytes.buffer.slice(offset, offset + length) });

      // The browser's storage: through a synchronous handle in the worker, as a file on the page.
      const folder = await (await navigator.storage.getDirectory()).getDirectoryHandle("models", { create: true });
      const file = await folder.getFileHandle("micro.gguf", { create: true });
      const writable = await file.createWritable();
      await writable.write(bytes);
      await writable.close();
      await reaches({ opfs: "models/micro.gguf" });
      await reaches({ opfs: "models/micro.gguf" }, { worker: false });
      await assert.fails(() => Engine.load({ opfs: "models/none.gguf" }), "source.io");

      // Servers that hide the length, break off, or know no ranges.
      await reaches(`${url}?total`);
      await reaches(`${url}?hidden`);
      await reaches(`${url}?whole`);
      await reaches(`${url}?broken`);
      await assert.fails(() => Engine.load(`${url}?missing`), "source.status");
      await assert.fails(() => Engine.load(`${url}?wrong`), "source.content_range");
      await assert.fails(() => Engine.load(`${url}?changing`), "source.changed");
      await assert.fails(() => Engine.load(`${origin}/models/none.gguf`), "source.status");
      await assert.fails(() => Engine.load([url, url]), "gguf.split");

      // Readers and files that are not what they should be.
      const failing = { length: 100, read: () => Promise.reject(new Error("no")) };
      const error = await assert.fails(() => Engine.load(failing), "source.other");
      assert.equal(error.message, "no");
      await assert.fails(() => Engine.load({ length: 100, read: () => new Uint8Array(1) }), "source.other");
      await assert.fails(() => Engine.load(new Uint8Array(100)), "gguf.not_gguf");
      await assert.fails(() => Engine.load(bytes.subarray(0, 2_000_000)), "gguf.truncated");
      await assert.fails(() => Engine.load(42), "option.wrong_type");
      await assert.fails(() => Engine.load(url, { contxt: 1 }), "option.unknown");
      await assert.fails(() => Engine.load(url, { kv: "q4" }), "option.wrong_type");
      await assert.fails(() => Engine.load(url, { context: 0 }), "option.out_of_range");
      await assert.fails(() => Engine.load(url, { context: 1_000_000 }), "context.too_large");
      const little = { memory: 8e6, residency: "gpu", selfTest: false };
      const large = await assert.fails(() => Engine.load(url, little), "memory.too_large");
      assert(large.details.bytes > 8e6 && large.details.largestContext > 0, JSON.stringify(large.details));
      await assert.fails(() => Engine.load(url, { signal: AbortSignal.abort() }), "cancelled");
      await assert.fails(() => Engine.load(url, { wasm: `${origin}/nothing.wasm` }), "internal");
      delete Navigator.prototype.gpu;
      await assert.fails(() => Engine.load(url, { worker: false }), "device.unavailable");
    },
    expected: /404|503|403/,
    check(_value, { requests }) {
      const ranges = requests.filter(({ path, range }) => path === "/models/micro-e2b-Q8_0.gguf" && range);
      if (ranges.length === 0) {
        throw new Error("nothing was read by ranges");
      }
    },
  },
  {
    title: "replies wait while the page is hidden, where that is asked for",
    async body({ Engine }, _given, assert) {
      let visibility = "visible";
      Object.defineProperty(document, "visibilityState", { get: () => visibility });
      const show = (how) => {
        visibility = how;
        document.dispatchEvent(new Event("visibilitychange"));
      };
      const options = { context: 128, selfTest: false, whenHidden: "pause" };
      const engine = await Engine.load("/models/micro-e2b-Q8_0.gguf", options);
      const long = { temperature: 0, maxTokens: 100, ignoreEos: true };
      const expected = (await engine.generate("Hello", long).result()).ids;
      const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));
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
      await pause(300);
      const before = seen.length;
      await pause(700);
      assert.equal(seen.length, before, "tokens while hidden");
      assert(before < 90, `${before} tokens came before it stopped`);
      show("visible");
      assert.equal((await reply.result()).ids, expected);

      // Asked while hidden, it begins when the page is shown; who gives up meanwhile is not kept waiting.
      show("hidden");
      const given = engine.generate("Hello", long);
      const nothing = follow(given);
      await pause(500);
      assert.equal(nothing, [], "tokens while hidden");
      given.cancel();
      await assert.fails(() => given.result(), "cancelled");
      const next = engine.generate("Hello", long);
      show("visible");
      assert.equal((await next.result()).ids, expected);
      await engine.unload();
      show("hidden");
      await assert.fails(() => Engine.load("/models/micro-e2b-Q8_0.gguf", { whenHidden: "sleep" }), "option.wrong_type");
    },
  },
  {
    title: "a reply survives the loss of the GPU",
    async body({ Engine }, _given, assert) {
      const { requestDevice } = GPUAdapter.prototype;
      const devices = [];
      GPUAdapter.prototype.requestDevice = async function (descriptor) {
        const device = await requestDevice.call(this, descriptor);
        devices.push(device);
        return device;
      };
      const engine = await Engine.load("/models/micro-e2b-Q8_0.gguf", { context: 128, worker: false, selfTest: false });
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
  },
  {
    title: "a page that Vite built",
    page: "/vite/index.html",
    body: null,
    folders: async () => ({ vite: await buildWithVite() }),
  },
  {
    title: "the names of the system before this one",
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
  },
  {
    title: "a policy like that of a Chrome extension",
    page: "/pages/extension.html?extension",
    body: null,
  },
  {
    title: "a page with a worker of its own that Vite built",
    page: "/vite/own-worker.html",
    body: null,
    folders: async () => ({ vite: await buildWithVite() }),
  },
];
