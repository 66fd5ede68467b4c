// Finds and starts the browsers that people use, with WebGPU but without need of a GPU: Chromium on the SwiftShader it brings,
// Firefox on lavapipe or another Vulkan driver. puppeteer drives both: Chromium over the developer tools' protocol (CDP),
// Firefox over WebDriver BiDi. See docs/decisions/0014-one-browser-driver.md.

import { existsSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, isAbsolute, join } from "node:path";
import { fileURLToPath } from "node:url";
import puppeteer from "puppeteer-core";
import { Browser } from "./page.mjs";

/** Chromium's flags: WebGPU in software, without a window, and no requests of its own to the network. */
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
  // A camera and a microphone that are not there, without a question.
  "--use-fake-device-for-media-stream",
  "--use-fake-ui-for-media-stream",
];

/** Where lavapipe keeps the kernels it has compiled, so that browsers started later need not compile them again. */
const KERNEL_CACHE = fileURLToPath(new URL("../../target/browser-kernels", import.meta.url));

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
    options: (_downloads, webgpu) => ({ browser: "chrome", args: webgpu ? CHROMIUM_FLAGS : [...CHROMIUM_FLAGS.filter((flag) => !/webgpu/.test(flag)), "--disable-features=WebGPU"] }),
  },
  firefox: {
    programs: [
      "firefox-esr",
      "firefox",
      "/Applications/Firefox.app/Contents/MacOS/firefox",
      "C:\\Program Files\\Mozilla Firefox\\firefox.exe",
    ],
    install: "apt-get install firefox-esr libvulkan1 mesa-vulkan-drivers",
    options: (downloads, webgpu) => ({
      browser: "firefox",
      extraPrefsFirefox: {
        "dom.webgpu.enabled": webgpu,
        // Firefox does not trust software drivers unless told.
        "gfx.webgpu.ignore-blocklist": true,
        // Some containers forbid the system calls that the sandbox needs, and tests open only our own pages.
        "security.sandbox.content.level": 0,
        // Downloads are saved without a question.
        "browser.download.folderList": 2,
        "browser.download.dir": downloads,
        "browser.download.useDownloadDir": true,
        "browser.download.always_ask_before_handling_new_types": false,
        // Reading the clipboard shows a button otherwise, which no test can press.
        "dom.events.testing.asyncClipboard": true,
        // A camera and a microphone that are not there, without a question.
        "media.navigator.streams.fake": true,
        "media.navigator.permission.disabled": true,
      },
    }),
  },
};

/** The names of browsers that can be started. */
export const NAMES = Object.keys(BROWSERS);

/** What to install on Debian for a browser that is known to work. */
export function advice(name) {
  return BROWSERS[name].install;
}

/** Where the installed program of a browser is; throws if there is none. */
export function find(name) {
  const { programs, install } = BROWSERS[name];
  const folders = (process.env.PATH ?? "").split(delimiter);
  const paths = programs.flatMap((program) => (isAbsolute(program) ? [program] : folders.map((folder) => join(folder, program))));
  const program = paths.find((path) => existsSync(path));
  if (!program) {
    throw new Error(`none of ${programs.join(", ")} is installed. On Debian:\n  ${install}`);
  }
  return program;
}

/**
 * Starts a browser. It ends with this process and leaves no files behind, except in the folder `profile` if one is given:
 * a browser started there again has everything it stored. `webgpu` may be false, as in browsers that have none.
 */
export async function start(name, { profile, webgpu = true } = {}) {
  const executablePath = find(name);
  // Everything a browser writes goes into one folder, which is removed at the end.
  const folder = mkdtempSync(join(tmpdir(), "rullama-browser-"));
  const downloads = join(folder, "downloads");
  mkdirSync(downloads);
  mkdirSync(KERNEL_CACHE, { recursive: true });
  const remove = () => rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
  process.on("exit", remove);
  const browser = await puppeteer.launch({
    ...BROWSERS[name].options(downloads, webgpu),
    executablePath,
    userDataDir: profile ?? join(folder, "profile"),
    env: { ...process.env, HOME: folder, TMPDIR: folder, MESA_SHADER_CACHE_DIR: KERNEL_CACHE },
    // Kernels are compiled by the CPU here; nothing is sent to the page meanwhile.
    protocolTimeout: 600_000,
    defaultViewport: null,
  });
  return new Browser(name, executablePath, browser, downloads, remove);
}
