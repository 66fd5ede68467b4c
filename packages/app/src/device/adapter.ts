// What the browser reports about its GPU, without an engine, and whether a model would run on it.

import { chooseBackend, type BackendInfo } from "rullama";

/** The parts of WebGPU that are read here. TypeScript's library doesn't have them everywhere yet. */
interface Adapter {
  readonly features: Iterable<string>;
  readonly limits: Record<string, number>;
  readonly info?: { vendor?: string; architecture?: string; device?: string; description?: string; isFallbackAdapter?: boolean };
}

interface Gpu {
  requestAdapter(options?: { powerPreference?: string }): Promise<Adapter | null>;
}

/** Why there is no WebGPU. */
export type Lack = "insecure" | "missing" | "no adapter";

/** `auto` is what computes unless the settings say otherwise. */
export type Support = ({ kind: "yes"; adapter: AdapterFacts } | { kind: "no"; lack: Lack }) & { auto: BackendInfo };

export interface AdapterFacts {
  name: string;
  fallback: boolean;
  features: string[];
  limits: Record<string, number>;
}

/** The limits that decide which models run, with their names for people. */
export const LIMITS: readonly [string, string][] = [
  ["maxBufferSize", "Largest buffer"],
  ["maxStorageBufferBindingSize", "Largest storage buffer binding"],
  ["maxStorageBuffersPerShaderStage", "Storage buffers per shader"],
  ["maxComputeWorkgroupStorageSize", "Shared memory per workgroup"],
  ["maxComputeInvocationsPerWorkgroup", "Threads per workgroup"],
  ["maxComputeWorkgroupsPerDimension", "Workgroups per dispatch dimension"],
];

export async function findSupport(): Promise<Support> {
  const auto = await chooseBackend();
  if (!globalThis.isSecureContext) {
    return { kind: "no", lack: "insecure", auto };
  }
  const gpu = (navigator as unknown as { gpu?: Gpu }).gpu;
  if (!gpu) {
    return { kind: "no", lack: "missing", auto };
  }
  const adapter = await gpu.requestAdapter({ powerPreference: "high-performance" }).catch(() => null);
  if (!adapter) {
    return { kind: "no", lack: "no adapter", auto };
  }
  const { info } = adapter;
  const limits: Record<string, number> = {};
  for (const [name] of LIMITS) {
    const value = adapter.limits[name];
    if (typeof value === "number") {
      limits[name] = value;
    }
  }
  return {
    kind: "yes",
    auto,
    adapter: {
      name: info?.description || [info?.vendor, info?.architecture].filter(Boolean).join(" "),
      fallback: auto.kind === "cpu",
      features: [...adapter.features].sort(),
      limits,
    },
  };
}
