// Where there is no WebGPU: a page that says so kindly, and what to do in the browser at hand.

import { make, type Child } from "../ui/dom";
import type { Lack } from "./adapter";

export type Browser = "chrome" | "edge" | "firefox" | "safari" | "ios" | "android" | "other";

export function browserOf(agent: string): Browser {
  // iPads say that they are Macs; touch gives them away, but the advice for Safari holds for both.
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
    "Update Chrome: WebGPU comes with version 113 and later on Windows and macOS.",
    "Open chrome://settings/system and switch on “Use graphics acceleration when available”, then restart.",
    "On Linux, open chrome://flags/#enable-unsafe-webgpu, choose “Enabled” and restart.",
  ],
  edge: [
    "Update Edge: WebGPU comes with version 113 and later.",
    "Open edge://settings/system and switch on graphics acceleration, then restart.",
  ],
  firefox: [
    "Update Firefox: WebGPU is on from version 141 on Windows and 145 on Macs with Apple silicon.",
    "Elsewhere, open about:config, set dom.webgpu.enabled to true, and restart.",
    "If that is not enough on Linux, Chrome or Chromium may know your graphics processor.",
  ],
  safari: ["Update to macOS 26: its Safari has WebGPU.", "On an older macOS, Chrome or Edge have it."],
  ios: ["Update to iOS or iPadOS 26: WebGPU comes with it, for every browser on the device."],
  android: ["Update Chrome: WebGPU comes with version 121 and later on Android 12 and later.", "Older devices do not have it, whatever the browser."],
  other: ["Current Chrome, Edge, Safari and Firefox have WebGPU on most computers and phones."],
};

export function supportView(lack: Lack, agent: string = navigator.userAgent): HTMLElement {
  return make(
    "section",
    { class: "page support", "aria-label": "WebGPU is missing" },
    make("h1", {}, TITLES[lack]),
    ...explanation(lack, agent),
    make(
      "p",
      { class: "muted" },
      "Your conversations are in the list as always: reading, exporting and importing them needs no graphics processor.",
    ),
  );
}

const TITLES: Record<Lack, string> = {
  insecure: "This page needs a secure address",
  missing: "This browser has no WebGPU yet",
  "no adapter": "No graphics processor is available",
};

function explanation(lack: Lack, agent: string): Child[] {
  if (lack === "insecure") {
    return [
      make("p", {}, "Browsers offer WebGPU only to pages that come by https, or from this very computer."),
      make("p", {}, "Open the page by an address that begins with https://, or as http://localhost."),
    ];
  }
  const why =
    lack === "missing"
      ? "The model runs on your graphics processor, which pages reach through WebGPU. Here is what usually helps:"
      : "The browser knows WebGPU, but gives no graphics processor to it. Here is what usually helps:";
  const steps = ADVICE[browserOf(agent)].map((step) => make("li", {}, step));
  if (lack === "no adapter") {
    steps.push(make("li", {}, "Update the driver of the graphics processor and restart the computer."));
  }
  return [make("p", {}, why), make("ol", { class: "steps" }, ...steps)];
}
