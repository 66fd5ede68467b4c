// One sentence about what this device can run.

import { bytes } from "../text/format";
import type { AdapterFacts, Lack } from "./adapter";

/** The part of what the browser reports that decides. */
type Facts = { kind: "yes"; adapter: AdapterFacts } | { kind: "no"; lack: Lack };

export interface Verdict {
  tone: "good" | "fair";
  title: string;
  text: string;
}

const TITLES: Record<Lack, string> = {
  insecure: "The CPU computes: for the GPU, this page needs a secure address",
  missing: "The CPU computes: this browser has no WebGPU",
  "no adapter": "The CPU computes: this browser found no GPU",
};

const ON_CPU = "Small models, such as the demo model, answer quickly. Larger models run too, but a GPU is many times faster.";

export function verdict(support: Facts, deviceMemory: number | undefined): Verdict {
  if (support.kind === "no" || support.adapter.fallback) {
    return support.kind === "no"
      ? { tone: "fair", title: TITLES[support.lack], text: ON_CPU }
      : { tone: "fair", title: "This browser has no GPU and only emulates one", text: `So the CPU computes, unless the settings say otherwise. ${ON_CPU}` };
  }
  const size = bytes(largestModel(support.adapter, deviceMemory));
  return {
    tone: "good",
    title: `Your GPU can run models up to about ${size}`,
    text: "This is an estimate: browsers don't report how much memory a GPU has. rullama checks the memory before it downloads a model.",
  };
}

/**
 * An estimate in bytes. Browsers set the largest buffer by the GPU's memory, to about a half or a quarter of it. On devices with
 * little memory the GPU shares it with everything else.
 */
export function largestModel({ limits }: Pick<AdapterFacts, "limits">, deviceMemory: number | undefined): number {
  const byBuffer = 2 * (limits.maxBufferSize ?? 256 * 2 ** 20);
  // Browsers report 8 for 8 GB or more.
  const byMemory = deviceMemory !== undefined && deviceMemory < 8 ? (deviceMemory / 2) * 1e9 : Number.POSITIVE_INFINITY;
  const size = Math.min(byBuffer, byMemory);
  return size >= 1e9 ? Math.round(size / 1e9) * 1e9 : Math.round(size / 1e8) * 1e8;
}
