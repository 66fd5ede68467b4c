// Which backend computes: the GPU, or the CPU where there is no GPU that can be relied on. Everything that decides it is here.

import type { RullamaError } from "./errors.js";
import type { BackendInfo, LoadOptions } from "./types.js";

type Asked = NonNullable<LoadOptions["backend"]>;

/** The part of WebGPU that tells whether there is a GPU, and which. */
export interface Gpu {
  requestAdapter(options: object): Promise<Adapter | null>;
}

export interface Adapter {
  readonly isFallbackAdapter?: boolean;
  readonly info?: AdapterInfo;
}

interface AdapterInfo {
  readonly vendor?: string;
  readonly architecture?: string;
  readonly device?: string;
  readonly description?: string;
  readonly isFallbackAdapter?: boolean;
}

/** Programs that pretend to be a GPU. Browsers say `isFallbackAdapter` of most, but not all of them do in every version. */
const SOFTWARE = /swiftshader|llvmpipe|lavapipe|softpipe|basic render/i;

/**
 * What the option `backend` means in this browser. `auto` takes the GPU unless there is none, or the browser only emulates one, which
 * is slower than the CPU.
 */
export async function chooseBackend(asked: Asked = "auto"): Promise<BackendInfo> {
  if (asked !== "auto") {
    return { kind: asked, reason: `The option \`backend\` is "${asked}".` };
  }
  const { gpu } = globalThis.navigator as { gpu?: Gpu };
  if (!gpu) {
    return { kind: "cpu", reason: "WebGPU is not available: the browser does not support it, or the page is not served over https or from localhost." };
  }
  const adapter = await gpu.requestAdapter({ powerPreference: "high-performance" }).catch(() => null);
  if (!adapter) {
    return { kind: "cpu", reason: "The browser found no GPU." };
  }
  if (isEmulated(adapter)) {
    return { kind: "cpu", reason: "The browser has no GPU and only emulates one in software, which is slower than the CPU." };
  }
  return { kind: "gpu", reason: "The browser offers a GPU." };
}

/** Whether a program pretends to be this GPU. */
export function isEmulated({ isFallbackAdapter, info = {} }: Adapter): boolean {
  const { vendor, architecture, device, description } = info;
  return isFallbackAdapter === true || info.isFallbackAdapter === true || SOFTWARE.test([vendor, architecture, device, description].join(" "));
}

/**
 * Why the CPU takes over after this error of a GPU that was chosen by `auto`; undefined after other errors. A model that needs too much
 * memory is not among them: on the CPU it would be slow, and its user should decide.
 */
export function reasonToLeave({ code, message }: RullamaError): string | undefined {
  switch (code) {
    case "device.unavailable":
      return `The GPU can't be opened: ${message}.`;
    case "device.unreliable":
      return "The GPU gives wrong results: it failed the self-test.";
    case "device.lost":
      return "The GPU stopped working twice within a minute.";
    default:
      return undefined;
  }
}
