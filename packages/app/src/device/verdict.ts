// One sentence about what the GPU can run.

import { bytes } from "../text/format";
import type { AdapterFacts, Support } from "./adapter";

export interface Verdict {
  tone: "good" | "fair" | "bad";
  title: string;
  text: string;
}

export function verdict(support: Support, deviceMemory: number | undefined): Verdict {
  if (support.kind === "no") {
    const title = {
      insecure: "This page needs a secure address",
      missing: "No WebGPU in this browser",
      "no adapter": "No GPU available in this browser",
    }[support.lack];
    return { tone: "bad", title, text: "Models can't run here. The chat page shows what you can do." };
  }
  if (support.adapter.fallback) {
    return {
      tone: "fair",
      title: "No GPU: this browser emulates it on the CPU",
      text: "Very small models, such as the demo model, run slowly. Larger ones don't run at a usable speed.",
    };
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
