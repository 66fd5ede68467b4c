// Devices with little memory: phones, mostly.
//
// There a model has to share memory with everything else, and a GPU that is busy for long is taken away. So embedding tables
// stay in the file and are read by rows, conversations are short, and prompts are read in small steps.

import type { LoadOptions } from "./types.js";

/** Tokens of a conversation, unless more are asked for. */
const CONTEXT = 1024;

/** Tokens of a prompt that are read at once. */
const ROWS = 64;

/** Gigabytes of memory up to which a device has little. */
const LITTLE = 4;

/** What tells how much memory a device has. */
export interface DeviceHints {
  deviceMemory?: number;
  userAgent?: string;
  userAgentData?: { mobile?: boolean };
  maxTouchPoints?: number;
}

/** Whether this device has little memory, as far as a page can tell. */
export function hasLittleMemory(hints: DeviceHints = globalThis.navigator as DeviceHints): boolean {
  const { deviceMemory, userAgent = "", userAgentData, maxTouchPoints = 0 } = hints;
  if (deviceMemory !== undefined && deviceMemory <= LITTLE) {
    return true;
  }
  // Safari tells nothing about memory, and takes an iPad for a Mac that can be touched.
  const mobile = userAgentData?.mobile ?? /iPhone|iPad|iPod|Android.*Mobile/.test(userAgent);
  return mobile || (/Macintosh/.test(userAgent) && maxTouchPoints > 1);
}

/** The part of the options that depends on memory: as asked for, else as the device allows. */
export function memoryOptions(
  options: LoadOptions,
  hints?: DeviceHints,
): { context?: number; residency?: string; rows?: number } {
  const { context, residency, tight = hasLittleMemory(hints) } = options;
  const asked = { ...(context === undefined ? {} : { context }), ...(residency === undefined ? {} : { residency }) };
  return tight ? { context: CONTEXT, residency: "rows", rows: ROWS, ...asked } : asked;
}
