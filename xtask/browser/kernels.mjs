// Compiles kernels in a real browser: `node kernels.mjs chromium|firefox KERNELS.json`.
//
// Browsers differ from naga, which native devices use, and from each other: Chromium compiles WGSL with Tint, which is
// stricter about uniform control flow; Firefox has a naga of its own, of another version than ours. Both run without
// a GPU, Chromium on the SwiftShader it brings, Firefox on whatever Vulkan driver there is.

import { readFile } from "node:fs/promises";
import { createServer } from "node:http";

import { advice, NAMES, start } from "./browsers.mjs";

const SECONDS = 300;

const [name, list] = process.argv.slice(2);
if (!NAMES.includes(name) || !list) {
  console.error("usage: node kernels.mjs chromium|firefox KERNELS.json");
  process.exit(2);
}

setTimeout(() => fail(`not done after ${SECONDS} seconds`), SECONDS * 1000).unref();

try {
  report(await compile());
} catch (error) {
  fail(error.stack);
}
process.exit();

async function compile() {
  const server = await serve();
  const { browser, program } = await start(name);
  const page = await browser.newPage();
  await page.goto(`http://127.0.0.1:${server.address().port}/`);
  const result = await page.evaluate(() => globalThis.compiled);
  await browser.close();
  if (result.problem) {
    fail(`${result.problem} (${program}). What is known to work, on Debian:\n  ${advice(name)}`);
  }
  return result;
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
