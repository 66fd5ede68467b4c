// Settings for devices with little memory, mostly phones.
//
// There the GPU shares its memory with everything else, and the system takes the GPU away from a page that keeps it busy for long or
// that is hidden. So embedding tables stay in the file and are read by rows, the context is small, prompts are read in small steps, what
// encodes images and sounds does not stay in memory, and replies pause while the page is hidden.

import type { LoadOptions } from "./types.js";

/** The default context. */
const CONTEXT = 1024;

/** Prompt tokens in one step. */
const ROWS = 64;

/** A device with this many gigabytes or fewer has little memory. */
const LITTLE = 4;

/** WebGPU's minimum for the largest buffer. A GPU with no more than that is a small one. */
const SMALLEST_BUFFER = 256 << 20;

/** Facts from which the amount of memory can be guessed. */
export interface DeviceHints {
  deviceMemory?: number;
  userAgent?: string;
  userAgentData?: { mobile?: boolean };
  maxTouchPoints?: number;
  /** The GPU's largest buffer. */
  largestBuffer?: number;
}

/** What the browser reports about this device. */
export async function deviceHints(): Promise<DeviceHints> {
  interface Browser extends DeviceHints {
    gpu?: { requestAdapter(options: object): Promise<{ limits: { maxBufferSize: number } } | null> };
  }
  const { deviceMemory, userAgent, userAgentData, maxTouchPoints, gpu } = globalThis.navigator as Browser;
  // A missing GPU is reported when the model is loaded.
  const adapter = await gpu?.requestAdapter({ powerPreference: "high-performance" }).catch(() => null);
  const told = { deviceMemory, userAgent, userAgentData, maxTouchPoints, largestBuffer: adapter?.limits.maxBufferSize };
  return Object.fromEntries(Object.entries(told).filter(([, value]) => value !== undefined));
}

/** Whether a device probably has little memory. */
export function hasLittleMemory(hints: DeviceHints): boolean {
  const { deviceMemory, userAgent = "", userAgentData, maxTouchPoints = 0, largestBuffer } = hints;
  if (deviceMemory !== undefined && deviceMemory <= LITTLE) {
    return true;
  }
  if (largestBuffer !== undefined && largestBuffer <= SMALLEST_BUFFER) {
    return true;
  }
  // Safari does not report memory, and reports an iPad as a Mac with a touch screen.
  const mobile = userAgentData?.mobile ?? /iPhone|iPad|iPod|Android.*Mobile/.test(userAgent);
  return mobile || (/Macintosh/.test(userAgent) && maxTouchPoints > 1);
}

/** The options that depend on memory, by the engine's names: as given, with smaller defaults if memory is tight. */
export function memoryOptions(
  { context, residency, keepTowers }: LoadOptions,
  tight: boolean,
): { context?: number; residency?: string; rows?: number; keep_towers?: boolean } {
  const asked = {
    ...(context === undefined ? {} : { context }),
    ...(residency === undefined ? {} : { residency }),
    ...(keepTowers === undefined ? {} : { keep_towers: keepTowers }),
  };
  return tight ? { context: CONTEXT, residency: "rows", rows: ROWS, keep_towers: false, ...asked } : asked;
}
