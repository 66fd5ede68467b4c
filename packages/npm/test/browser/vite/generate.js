// Loads a model and generates two tokens.

export async function generateTwo(Engine, options) {
  const engine = await Engine.load("/models/micro-e2b-Q8_0.gguf", { context: 512, ...options });
  const { ids } = await engine.generate("Hello", { temperature: 0, maxTokens: 2 }).result();
  await engine.unload();
  if (ids.length !== 2) throw new Error(`${ids.length} tokens came`);
}
