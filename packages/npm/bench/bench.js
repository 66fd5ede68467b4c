// Measures a model in this browser as `rullama bench` does in a terminal, with the package as it is published.
//
// What is measured is what a page gets: replies of a session through the worker, greedy, their texts decoded. What it finds is
// shown, and sent to the log of `rullama serve`, one message for each line; the last is `DONE`. `cargo xtask bench-page` serves it.

import { Engine } from "../dist/index.js";

const asked = new URLSearchParams(location.search);
const number = (name, otherwise) => Number(asked.get(name) ?? otherwise);
const prompt = number("prompt", 512);
const generate = number("generate", 128);
const repeat = number("repeat", 5);
const depths = (asked.get("depth") ?? "0,4096").split(",").map(Number);
const element = (id) => document.getElementById(id);

/** Says something on the page and to the server, if it listens. */
async function say(text) {
  element("status").textContent = text;
  await fetch("/api/log?tag=bench", { method: "POST", body: text }).catch(() => {});
}

/** The model that the address names, or the only one that the server has; otherwise shows what there is to choose from. */
async function chooseModel() {
  if (asked.get("model")) {
    return asked.get("model");
  }
  const answer = await fetch("/api/models").catch(() => undefined);
  const { models } = answer?.ok ? await answer.json() : { models: [] };
  if (models.length === 1) {
    return models[0].url;
  }
  for (const { name, url } of models) {
    const link = Object.assign(document.createElement("a"), { textContent: name });
    link.href = `?${new URLSearchParams([["model", url], ...asked])}`;
    const item = document.createElement("li");
    item.append(link);
    element("models").append(item);
  }
  return undefined;
}

/** Random tokens from a fixed seed, without the special ones at the beginning of the vocabulary. */
function randomTokens(count, vocabulary) {
  let state = 1;
  return Uint32Array.from({ length: count }, () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return 1000 + (state % Math.max(1, vocabulary - 1000));
  });
}

function statistics(values) {
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  const squares = values.reduce((sum, value) => sum + (value - mean) ** 2, 0);
  return { mean, stddev: Math.sqrt(squares / Math.max(1, values.length - 1)) };
}

/** A reply of exactly so many tokens: milliseconds to the first, and from it to the last. */
async function reply(session, ids, count) {
  const started = performance.now();
  let first;
  let tokens = 0;
  for await (const delta of session.generate(ids, { maxTokens: count, temperature: 0, ignoreEos: true })) {
    tokens += delta.ids.length;
    first ??= { at: performance.now(), tokens };
  }
  const end = performance.now();
  return { first: first.at - started, rest: end - first.at, later: tokens - first.tokens };
}

async function measure(engine, depth) {
  const session = engine.session();
  const tokens = randomTokens(depth + Math.max(prompt, 1), engine.info.vocabulary);
  const before = tokens.subarray(0, depth);
  const prompts = [];
  const generates = [];
  // One round does not count: kernels are made in it.
  for (let round = 0; round <= repeat; round++) {
    if (prompt > 0) {
      if (depth > 0) {
        await reply(session, before, 1);
      } else {
        await session.clear();
      }
      const { first } = await reply(session, tokens, 1);
      prompts.push((1000 * prompt) / first);
    }
    if (generate > 1) {
      const { rest, later } = await reply(session, tokens.subarray(0, depth + 1), generate);
      generates.push((1000 * later) / rest);
    }
  }
  await session.close();
  const counted = (values) => (values.length > 1 ? statistics(values.slice(1)) : null);
  return {
    depth,
    prompt_tokens: prompt,
    prompt_tps: counted(prompts),
    generate_tokens: generate,
    generate_tps: counted(generates),
  };
}

function show(results) {
  const rows = results.map(({ depth, prompt_tps, generate_tps }) => {
    const row = document.createElement("tr");
    const speed = (found) => (found ? `${found.mean.toFixed(1)} ± ${found.stddev.toFixed(1)}` : "–");
    for (const text of [depth, prompt, speed(prompt_tps), generate, speed(generate_tps)]) {
      row.append(Object.assign(document.createElement("td"), { textContent: text }));
    }
    return row;
  });
  element("results").tBodies[0].replaceChildren(...rows);
  element("results").hidden = false;
}

async function run() {
  const model = await chooseModel();
  if (!model) {
    await say("ERR the address names no model: ?model=URL");
    return;
  }
  const context = Math.max(...depths) + Math.max(prompt, generate) + 1;
  const started = performance.now();
  const options = { context, onProgress: ({ progress }) => (element("progress").value = progress) };
  if (asked.has("subgroups")) {
    options.subgroups = asked.get("subgroups") !== "false";
  }
  for (const name of ["residency", "backend"]) {
    if (asked.has(name)) {
      options[name] = asked.get(name);
    }
  }
  if (asked.has("threads")) {
    options.threads = number("threads");
  }
  const engine = await Engine.load(model, options);
  const load_ms = performance.now() - started;
  const { name, backend, gpu, memory, wasmMemory } = engine.info;
  const computes = gpu ? gpu.name : `the CPU with ${backend.threads} threads`;
  await say(`${name} on ${computes}, loaded in ${(load_ms / 1000).toFixed(1)} s, ${wasmMemory} bytes of wasm memory`);
  const results = [];
  for (const depth of depths) {
    results.push(await measure(engine, depth));
    show(results);
    await say(JSON.stringify(results.at(-1)));
  }
  const report = { model: name, backend, gpu, memory, wasm_memory_bytes: engine.info.wasmMemory, load_ms, results };
  element("json").textContent = JSON.stringify(report, null, 2);
  await say(JSON.stringify(report));
  await engine.unload();
}

run()
  .catch((error) => say(`ERR ${error.code ?? ""} ${error.message}`))
  .then(() => say("DONE"));
