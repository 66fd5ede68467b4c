// Loads a model and generates two tokens, or, unless `whole`, only loads as far as needs no kernels.

export async function generateTwo(Engine, options, whole, assert) {
  const url = "/models/micro-e2b-Q8_0.gguf";
  if (!whole) return assert.reachesUpload(Engine, url, options);
  const engine = await Engine.load(url, { context: 512, selfTest: false, ...options });
  const { ids } = await engine.generate("Hello", { temperature: 0, maxTokens: 2 }).result();
  await engine.unload();
  if (ids.length !== 2) throw new Error(`${ids.length} tokens came`);
}
