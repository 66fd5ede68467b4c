// Which backend computes: the GPU, or the CPU where there is none.

import type { BackendInfo, LoadOptions } from "./types.js";

type Asked = NonNullable<LoadOptions["backend"]>;

/** The part of WebGPU that tells whether there is a GPU. */
interface Gpu {
  requestAdapter(options: object): Promise<object | null>;
}

/** Chooses a backend. The GPU is taken unless the options or the browser rule it out. */
export async function chooseBackend(asked: Asked = "auto"): Promise<BackendInfo> {
  if (asked !== "auto") {
    return { kind: asked, reason: `The option \`backend\` is "${asked}".` };
  }
  const { gpu } = navigator as { gpu?: Gpu };
  if (!gpu) {
    return { kind: "cpu", reason: "WebGPU is not available: the browser does not support it, or the page is not served over https or from localhost." };
  }
  const adapter = await gpu.requestAdapter({ powerPreference: "high-performance" }).catch(() => null);
  return adapter ? { kind: "gpu", reason: "The browser offers a GPU." } : { kind: "cpu", reason: "The browser found no GPU." };
}
