// Compiles kernels in a real browser: `node kernels.mjs chromium|firefox KERNELS.json`.
//
// Browsers differ from naga, which native devices use, and from each other: Chromium compiles WGSL with Tint, which is
// stricter about uniform control flow; Firefox has a naga of its own, of another version than ours. Both run without
// a GPU, Chromium on the SwiftShader it brings, Firefox on whatever Vulkan driver there is.

import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { delimiter, isAbsolute, join } from "node:path";

const SECONDS = 300;

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
    async launch(executablePath) {
      const { chromium } = await import("playwright-core");
      const args = [
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
      return chromium.launch({ executablePath, args });
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
    async launch(executablePath) {
      const { default: puppeteer } = await import("puppeteer-core");
      const extraPrefsFirefox = {
        "dom.webgpu.enabled": true,
        // A driver in software is on the list of those not to be trusted.
        "gfx.webgpu.ignore-blocklist": true,
        // Some containers forbid what the sandbox is made of, and the only page is ours.
        "security.sandbox.content.level": 0,
      };
      return puppeteer.launch({ browser: "firefox", executablePath, extraPrefsFirefox });
    },
  },
};

const [name, list] = process.argv.slice(2);
const browser = BROWSERS[name];
if (!browser || !list) {
  console.error("usage: node kernels.mjs chromium|firefox KERNELS.json");
  process.exit(2);
}

// Profiles and whatever else a browser writes go where it can be swept away.
const folder = mkdtempSync(join(tmpdir(), "rullama-browser-"));
Object.assign(process.env, { HOME: folder, TMPDIR: folder });
process.on("exit", () => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }));

// The drivers kill their browser when this process ends, which is what every way out of here comes to.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) {
  process.on(signal, () => process.exit(1));
}
setTimeout(() => fail(`not done after ${SECONDS} seconds`), SECONDS * 1000).unref();

try {
  report(await compileIn(browser));
} catch (error) {
  fail(error.stack);
}
process.exit();

async function compileIn({ programs, install, launch }) {
  const program = find(programs);
  if (!program) {
    fail(`none of ${programs.join(", ")} is installed. On Debian:\n  ${install}`);
  }
  const server = await serve();
  const running = await launch(program);
  const page = await running.newPage();
  await page.goto(`http://127.0.0.1:${server.address().port}/`);
  const result = await page.evaluate(() => globalThis.compiled);
  await running.close();
  if (result.problem) {
    fail(`${result.problem} (${program}). What is known to work, on Debian:\n  ${install}`);
  }
  return result;
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

/** A server for the page: WebGPU needs a secure context, which 127.0.0.1 is, and modules are not read from files. */
async function serve() {
  const page = `<!doctype html><meta charset="utf-8"><title>kernels</title>
    <script type="module">
      import { compileAll } from "./compile.mjs";
      globalThis.compiled = compileAll();
    </script>`;
  const files = {
    "/": ["text/html", page],
    "/compile.mjs": ["text/javascript", await readFile(new URL("compile.mjs", import.meta.url))],
    "/kernels.json": ["application/json", await readFile(list)],
  };
  const server = createServer((request, response) => {
    const [type, content] = files[request.url] ?? [];
    response.writeHead(type ? 200 : 404, { "content-type": type ?? "text/plain" });
    response.end(content);
  });
  return new Promise((resolve, reject) => {
    server.on("error", reject);
    server.listen(0, "127.0.0.1", () => resolve(server));
  });
}

function report({ features, results }) {
  const skipped = results.filter(({ missing }) => missing);
  const tried = results.filter(({ missing }) => !missing);
  const failed = tried.filter(({ notes, failure }) => failure || notes.some(({ type }) => type === "error"));
  for (const { label, notes, failure } of tried) {
    for (const { type, message, line, source } of notes) {
      console.log(`${name}: ${label}: ${type} in line ${line}, \`${source?.trim()}\`: ${brief(message)}`);
    }
    if (failure && !notes.some(({ type }) => type === "error")) {
      console.log(`${name}: ${label}: no pipeline: ${brief(failure)}`);
    }
  }
  const missing = [...new Set(skipped.flatMap(({ missing }) => missing))].join(" and ");
  console.log(
    `${name} (${features.join(", ") || "no features"}): ${tried.length - failed.length} kernels compiled` +
      (failed.length > 0 ? `, ${failed.length} failed` : "") +
      (skipped.length > 0 ? `, ${skipped.length} skipped for want of ${missing}` : ""),
  );
  // Nothing compiled proves nothing.
  process.exitCode = failed.length > 0 || tried.length === 0 ? 1 : 0;
}

/** A browser's message on one line, without the piece of source that Firefox draws under it. */
function brief(message) {
  const lines = message.split("\n").filter((line) => !/^\s*\d*\s*[┌│]/.test(line));
  return lines.map((line) => line.trim()).filter(Boolean).join("; ");
}

function fail(problem) {
  console.error(`${name}: ${problem}`);
  process.exit(1);
}
