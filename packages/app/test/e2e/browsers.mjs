// Starts the browsers: Chromium with WebGPU in software, and a Firefox as people have it.

import { CHROMIUM_FLAGS } from "../../../../xtask/browser/browsers.mjs";

export async function startChromium() {
  const { chromium } = await import("playwright-core");
  return chromium.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    args: CHROMIUM_FLAGS,
  });
}

export async function startFirefox() {
  // Playwright drives only a Firefox that it has patched.
  const { default: puppeteer } = await import("puppeteer-core");
  return puppeteer.launch({
    browser: "firefox",
    executablePath: process.env.FIREFOX ?? "/usr/bin/firefox-esr",
    extraPrefsFirefox: {
      "dom.webgpu.enabled": true,
      "gfx.webgpu.ignore-blocklist": true,
      "security.sandbox.content.level": 0,
    },
    protocolTimeout: 600_000,
  });
}
