// Runs in the page: compiles kernels, some of them to pipelines, and says what the browser thinks of each.

const FEATURES = { f16: "shader-f16", subgroups: "subgroups" };

/** Kernels in the making at a time: enough to keep a browser's threads busy. */
const AT_ONCE = 8;

/**
 * Compiles every kernel of `kernels.json` on a device with WebGPU's default limits, except for workgroup memory, so that a kernel
 * which needs more than every device has is refused here as well. Those that are marked become pipelines; with `few`, as many of them
 * as show every fragment with each body.
 */
export async function compileAll({ few }) {
  const adapter = await navigator.gpu?.requestAdapter();
  if (!adapter) {
    return { problem: "no WebGPU adapter" };
  }
  const features = Object.values(FEATURES).filter((feature) => adapter.features.has(feature));
  // As much workgroup memory as there is: the engine asks for it too, and chooses tiles by it.
  const { maxComputeWorkgroupStorageSize } = adapter.limits;
  const device = await adapter.requestDevice({ requiredFeatures: features, requiredLimits: { maxComputeWorkgroupStorageSize } });
  // Each failure is told where it is awaited; the console need not hear of it again.
  device.addEventListener("uncapturederror", (event) => event.preventDefault());
  const lost = device.lost.then(({ message }) => ({ problem: `the device was lost: ${message}` }));

  const kernels = await (await fetch("kernels.json")).json();
  if (few) {
    const seen = new Set();
    for (const kernel of kernels.filter(({ pipeline }) => pipeline)) {
      const [body, ...words] = kernel.label.split(/[+ ]/);
      const shown = [body, ...words.filter((word) => !word.includes("="))].map((word) => `${body} ${word}`);
      kernel.pipeline = shown.some((one) => !seen.has(one));
      shown.forEach((one) => seen.add(one));
    }
  }
  const results = [];
  const waiting = kernels.entries();
  const work = async () => {
    for (const [index, kernel] of waiting) {
      const missing = needs(kernel.wgsl).filter((feature) => !features.includes(feature));
      results[index] =
        missing.length > 0 ? { label: kernel.label, missing } : await compile(device, kernel);
    }
  };
  const all = Promise.all(Array.from({ length: AT_ONCE }, work));
  return await Promise.race([all.then(() => ({ features, results })), lost]);
}

/** The features that the directives at the head of a kernel ask for. */
function needs(wgsl) {
  const [head] = wgsl.match(/^(\s*enable [^;]*;)*/);
  const names = head.split(/[\s,;]+/).filter((word) => word in FEATURES);
  return names.map((name) => FEATURES[name]);
}

async function compile(device, { label, wgsl, pipeline }) {
  const module = device.createShaderModule({ label, code: wgsl });
  const { messages } = await module.getCompilationInfo();
  // The messages themselves cannot leave the page.
  const notes = messages.map(({ type, message, lineNum }) => ({
    type,
    message,
    line: lineNum,
    source: wgsl.split("\n")[lineNum - 1],
  }));
  if (!pipeline) {
    return { label, notes };
  }
  let failure;
  try {
    await device.createComputePipelineAsync({ label, layout: "auto", compute: { module, entryPoint: "main" } });
  } catch (error) {
    failure = error.message;
  }
  return { label, notes, failure };
}
