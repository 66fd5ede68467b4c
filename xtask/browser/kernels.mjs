// Compiles every kernel in real browsers, from the list that `cargo run --package rullama-gpu --example kernels` writes to
// target/kernels.json.
//
// Browsers differ from naga, which native devices use, and from each other: Chromium compiles WGSL with Tint, which is stricter
// about uniform control flow; Firefox has a naga of its own, of another version than ours.

import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { fileURLToPath } from "node:url";

const LIST = fileURLToPath(new URL("../../target/kernels.json", import.meta.url));

export const tests = [
  {
    title: "every kernel compiles",
    gpu: [],
    async run({ browser, shared }) {
      const context = await browser.newContext();
      const page = await context.newPage();
      await page.goto(shared.address);
      // A pipeline takes Chromium a second here, on SwiftShader; Firefox makes one for every constant as well.
      const few = browser.name === "chromium";
      const result = await page.evaluate(async (options) => (await import("/compile.mjs")).compileAll(options), { few });
      await context.close();
      if (result.problem) {
        throw new Error(result.problem);
      }
      judge(browser.name, result);
    },
  },
];

/** A server for the page: modules cannot be loaded from files. */
export async function setUp() {
  if (!existsSync(LIST)) {
    throw new Error("the list of kernels is missing: cargo run --package rullama-gpu --example kernels -- target/kernels.json");
  }
  const page = '<!doctype html><meta charset="utf-8"><title>kernels</title>';
  const files = {
    "/": ["text/html", page],
    "/compile.mjs": ["text/javascript", await readFile(new URL("compile.mjs", import.meta.url))],
    "/kernels.json": ["application/json", await readFile(LIST)],
  };
  const server = createServer((request, response) => {
    const [type, content] = files[request.url] ?? [];
    response.writeHead(type ? 200 : 404, { "content-type": type ?? "text/plain" });
    response.end(content);
  });
  await new Promise((resolve, reject) => {
    server.on("error", reject);
    server.listen(0, "127.0.0.1", resolve);
  });
  const close = () => {
    server.closeAllConnections();
    server.close();
  };
  return { address: `http://127.0.0.1:${server.address().port}/`, close };
}

/** Throws if a kernel failed, or if none was compiled. */
function judge(name, { features, results }) {
  const skipped = results.filter(({ missing }) => missing);
  const tried = results.filter(({ missing }) => !missing);
  const faults = [];
  for (const { label, notes, failure } of tried) {
    const errors = notes.filter(({ type }) => type === "error");
    for (const { type, message, line, source } of notes) {
      const text = `${label}: ${type} in line ${line}, \`${source?.trim()}\`: ${brief(message)}`;
      if (type === "error") {
        faults.push(text);
      } else {
        console.log(`        ${name}: ${text}`);
      }
    }
    if (failure && errors.length === 0) {
      faults.push(`${label}: no pipeline: ${brief(failure)}`);
    }
  }
  const missing = [...new Set(skipped.flatMap(({ missing }) => missing))].join(" and ");
  console.log(
    `        ${name} (${features.join(", ") || "no features"}): ${tried.length} kernels tried` +
      (skipped.length > 0 ? `, ${skipped.length} skipped for want of ${missing}` : ""),
  );
  if (faults.length > 0) {
    throw new Error(faults.join("\n"));
  }
  if (tried.length === 0) {
    throw new Error("no kernel was compiled");
  }
}

/** A browser's message on one line, without the excerpt of source that Firefox draws under it. */
function brief(message) {
  const lines = message.split("\n").filter((line) => !/^\s*\d*\s*[┌│]/.test(line));
  return lines.map((line) => line.trim()).filter(Boolean).join("; ");
}
