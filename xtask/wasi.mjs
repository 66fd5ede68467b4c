// Runs a Rust test binary that was built for WASI: `node wasi.mjs BINARY [ARGUMENTS]`.
//
// The libraries' own tests thus run in 32-bit wasm, where sizes and alignments differ, without a
// browser. The folder above the current one is visible, because test data lies there.

import { readFile } from "node:fs/promises";
import { WASI } from "node:wasi";

const [binary, ...rest] = process.argv.slice(2);
const root = new URL("..", import.meta.url).pathname;
const wasi = new WASI({
  version: "preview1",
  // One thread is all there is; libtest must not try to start more.
  args: [binary, ...rest, "--test-threads=1"],
  env: { ...process.env },
  preopens: { [root]: root, "/tmp": "/tmp" },
  returnOnExit: true,
});
const module = await WebAssembly.compile(await readFile(binary));
const instance = await WebAssembly.instantiate(module, wasi.getImportObject());
process.exitCode = wasi.start(instance);
