// Loads a model and generates two tokens on the CPU, with two threads if the page is isolated.

export async function generateTwo(Engine, options) {
  const engine = await Engine.load("/models/micro-e2b-Q8_0.gguf", { backend: "cpu", threads: 2, context: 512, ...options });
  const { ids } = await engine.generate("Hello", { temperature: 0, maxTokens: 2 }).result();
  const { threads } = engine.info.backend;
  await engine.unload();
  if (ids.length !== 2) throw new Error(`${ids.length} tokens came`);
  if (threads !== (crossOriginIsolated ? 2 : 1)) throw new Error(`${threads} threads computed`);
}
