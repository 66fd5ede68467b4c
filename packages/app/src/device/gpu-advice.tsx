// What users of a browser without WebGPU can do to have their GPU used.

import type { Lack } from "./adapter";

export type Browser = "chrome" | "edge" | "firefox" | "safari" | "ios" | "android" | "other";

export function browserOf(agent: string): Browser {
  // iPads claim to be Macs, but the advice for Safari fits both.
  if (/iPhone|iPad|iPod/.test(agent)) {
    return "ios";
  }
  if (/Firefox\//.test(agent)) {
    return "firefox";
  }
  if (/Android/.test(agent)) {
    return "android";
  }
  if (/Edg\//.test(agent)) {
    return "edge";
  }
  if (/Chrome\//.test(agent)) {
    return "chrome";
  }
  return /Safari\//.test(agent) ? "safari" : "other";
}

const ADVICE: Record<Browser, string[]> = {
  chrome: [
    "Update Chrome: version 113 and later have WebGPU on Windows and macOS.",
    "Open chrome://settings/system and switch on “Use graphics acceleration when available”, then restart.",
    "On Linux, open chrome://flags/#enable-unsafe-webgpu, choose “Enabled” and restart.",
  ],
  edge: [
    "Update Edge: version 113 and later have WebGPU.",
    "Open edge://settings/system and switch on graphics acceleration, then restart.",
  ],
  firefox: [
    "Update Firefox: WebGPU is on in version 141 and later on Windows, and in 145 and later on Macs with Apple silicon.",
    "Elsewhere, open about:config, set dom.webgpu.enabled to true, and restart.",
    "If that does not help on Linux, try Chrome or Chromium.",
  ],
  safari: ["Update to macOS 26: its Safari has WebGPU.", "On an older macOS, use Chrome or Edge."],
  ios: ["Update to iOS or iPadOS 26: every browser on the device has WebGPU then."],
  android: ["Update Chrome: version 121 and later have WebGPU on Android 12 and later.", "Older devices don't have WebGPU in any browser."],
  other: ["Current Chrome, Edge, Safari and Firefox have WebGPU on most computers and phones."],
};

/** Without a GPU the app works, only more slowly. So this is folded. */
export function GpuAdvice({ lack, agent = navigator.userAgent }: { lack: Lack; agent?: string }) {
  const steps = lack === "insecure" ? SECURE : [...ADVICE[browserOf(agent)], ...(lack === "no adapter" ? ["Update your GPU driver and restart the computer."] : [])];
  return (
    <details class="technical">
      <summary>How to use the GPU</summary>
      <ol class="steps">
        {steps.map((step) => (
          <li key={step}>{step}</li>
        ))}
      </ol>
    </details>
  );
}

const SECURE = [
  "Browsers offer WebGPU only to pages with an https address, and to pages from your own computer.",
  "Open the page at an address that begins with https://, or at http://localhost.",
];
