// Devices with little memory: phones, mostly.
//
// There a model has to share memory with everything else, and a GPU that is busy for long is taken away, as it is from a
// page that nobody sees. So embedding tables stay in the file and are read by rows, conversations are short, prompts are
// read in small steps, and replies wait while the page is hidden.

import type { LoadOptions } from "./types.js";

/** Tokens of a conversation, unless more are asked for. */
const CONTEXT = 1024;

/** Tokens of a prompt that are read at once. */
const ROWS = 64;

/** Gigabytes of memory up to which a device has little. */
const LITTLE = 4;

/** The largest buffer that WebGPU promises everywhere. Who offers no more has little to offer. */
const SMALLEST_BUFFER = 256 << 20;

/** What tells how much memory a device has. */
export interface DeviceHints {
  deviceMemory?: number;
  userAgent?: string;
  userAgentData?: { mobile?: boolean };
  maxTouchPoints?: number;
  /** The GPU's largest buffer. */
  largestBuffer?: number;
}

/** What the browser tells of this device. */
export async function deviceHints(): Promise<DeviceHints> {
  interface Browser extends DeviceHints {
    gpu?: { requestAdapter(options: object): Promise<{ limits: { maxBufferSize: number } } | null> };
  }
  const { deviceMemory, userAgent, userAgentData, maxTouchPoints, gpu } = globalThis.navigator as Browser;
  // Whoever loads a model learns soon enough that there is no GPU.
  const adapter = await gpu?.requestAdapter({ powerPreference: "high-performance" }).catch(() => null);
  const told = { deviceMemory, userAgent, userAgentData, maxTouchPoints, largestBuffer: adapter?.limits.maxBufferSize };
  return Object.fromEntries(Object.entries(told).filter(([, value]) => value !== undefined));
}

/** Whether a device has little memory, as far as a page can tell. */
export function hasLittleMemory(hints: DeviceHints): boolean {
  const { deviceMemory, userAgent = "", userAgentData, maxTouchPoints = 0, largestBuffer } = hints;
  if (deviceMemory !== undefined && deviceMemory <= LITTLE) {
    return true;
  }
  if (largestBuffer !== undefined && largestBuffer <= SMALLEST_BUFFER) {
    return true;
  }
  // Safari tells nothing about memory, and takes an iPad for a Mac that can be touched.
  const mobile = userAgentData?.mobile ?? /iPhone|iPad|iPod|Android.*Mobile/.test(userAgent);
  return mobile || (/Macintosh/.test(userAgent) && maxTouchPoints > 1);
}

/** The options that depend on memory: as asked for, else as a device with little of it or with enough needs them. */
export function memoryOptions(
  { context, residency }: LoadOptions,
  tight: boolean,
): { context?: number; residency?: string; rows?: number } {
  const asked = { ...(context === undefined ? {} : { context }), ...(residency === undefined ? {} : { residency }) };
  return tight ? { context: CONTEXT, residency: "rows", rows: ROWS, ...asked } : asked;
}
