// Starts a browser that people use, with WebGPU but without need of a GPU: Chromium on the SwiftShader it brings, Firefox
// on whatever Vulkan driver there is.

import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, isAbsolute, join } from "node:path";

/** What Chromium is told: WebGPU in software, without a window, and nothing asked of the network. */
export const CHROMIUM_FLAGS = [
  "--headless=new",
  "--no-sandbox",
  "--enable-unsafe-webgpu",
  "--use-webgpu-adapter=swiftshader",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
  "--disable-quic",
];

const BROWSERS = {
  chromium: {
    programs: [
      "chromium",
      "chromium-browser",
      "google-chrome",
      "google-chrome-stable",
      "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
      "C:\\Program Files\\Google\\Chrome\\Application\\chrome.exe",
    ],
    install: "apt-get install chromium",
    async launch(executablePath, profile) {
      const { chromium } = await import("playwright-core");
      const options = { executablePath, args: CHROMIUM_FLAGS };
      // A browser on a profile of its own is headless by the flag above alone, which is the whole browser.
      return profile ? chromium.launchPersistentContext(profile, { ...options, headless: false }) : chromium.launch(options);
    },
  },
  firefox: {
    programs: [
      "firefox-esr",
      "firefox",
      "/Applications/Firefox.app/Contents/MacOS/firefox",
      "C:\\Program Files\\Mozilla Firefox\\firefox.exe",
    ],
    install: "apt-get install firefox-esr libvulkan1 mesa-vulkan-drivers",
    // Playwright drives only a Firefox that it has patched; puppeteer drives the one that people use.
    async launch(executablePath, userDataDir) {
      const { default: puppeteer } = await import("puppeteer-core");
      const extraPrefsFirefox = {
        "dom.webgpu.enabled": true,
        // A driver in software is on the list of those not to be trusted.
        "gfx.webgpu.ignore-blocklist": true,
        // Some containers forbid what the sandbox is made of, and the only page is ours.
        "security.sandbox.content.level": 0,
      };
      const options = { executablePath, extraPrefsFirefox, protocolTimeout: 600_000 };
      return puppeteer.launch({ browser: "firefox", ...options, ...(userDataDir ? { userDataDir } : {}) });
    },
  },
};

/** The names of browsers that can be started. */
export const NAMES = Object.keys(BROWSERS);

/** What to install on Debian for a browser that is known to work. */
export function advice(name) {
  return BROWSERS[name].install;
}

/**
 * Starts a browser. It ends with this process, and nothing that it wrote is left, but in the folder `profile` if one is
 * given: started on that again, it has everything that it kept.
 */
export async function start(name, profile) {
  const { programs, install, launch } = BROWSERS[name];
  const program = find(programs);
  if (!program) {
    throw new Error(`none of ${programs.join(", ")} is installed. On Debian:\n  ${install}`);
  }
  // Profiles and whatever else a browser writes go where it can be swept away.
  const folder = mkdtempSync(join(tmpdir(), "rullama-browser-"));
  Object.assign(process.env, { HOME: folder, TMPDIR: folder });
  process.on("exit", () => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }));
  // The drivers kill their browser when this process ends, which is what every way out of here comes to.
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) {
    process.on(signal, () => process.exit(1));
  }
  return { browser: await launch(program, profile), program };
}

/** The first program there is, looked for as a shell does. */
function find(programs) {
  const folders = (process.env.PATH ?? "").split(delimiter);
  // A program with a path of its own is joined to no folder.
  const paths = programs.flatMap((program) =>
    isAbsolute(program) ? [program] : folders.map((folder) => join(folder, program)),
  );
  return paths.find((path) => existsSync(path));
}
