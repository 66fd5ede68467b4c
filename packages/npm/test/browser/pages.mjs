// What the package must do in a browser before any kernel is compiled: every source, the errors of servers, stored models, strict
// policies, and pages that Vite built, which generate tokens on the CPU.

import { rmSync } from "node:fs";
import { cp, mkdir, mkdtemp, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { pageTest, setUp as serveTests } from "./in-page.mjs";

export async function setUp() {
  const shared = await serveTests();
  shared.server.folders.vite = await buildWithVite();
  return shared;
}

/** Builds the pages in `vite/` as their author would, with the package installed; gives the folder of the result. */
async function buildWithVite() {
  const { build } = await import("vite");
  const at = (path) => fileURLToPath(new URL(path, import.meta.url));
  const root = await mkdtemp(join(tmpdir(), "rullama-vite-"));
  process.on("exit", () => rmSync(root, { recursive: true, force: true }));
  await cp(at("vite"), root, { recursive: true });
  await mkdir(join(root, "node_modules"));
  await symlink(at("../.."), join(root, "node_modules/rullama"));
  const input = ["index.html", "own-worker.html"].map((page) => join(root, page));
  await build({ root, configFile: false, base: "/vite/", logLevel: "error", build: { rolldownOptions: { input } } });
  return join(root, "dist");
}

/** A page that loads the package its own way, by `globalThis.testBody`. */
function ownPage(title, path, more = {}) {
  return pageTest({ title, path, ...more });
}

export const tests = [
  pageTest({
    title: "every kind of source, and the errors of servers",
    gpu: [],
    quick: true,
    async body({ Engine, inspect }, { origin }, assert) {
      const reaches = (source, options) => assert.reachesUpload(Engine, source, options);
      const load = (source, options) => Engine.load(source, { backend: "gpu", selfTest: false, ...options });
      const url = `${origin}/models/micro-e2b-Q8_0.gguf`;
      const bytes = new Uint8Array(await (await fetch(url)).arrayBuffer());
      await reaches("models/micro-e2b-Q8_0.gguf");
      await reaches(new URL(url));
      await reaches([url], { worker: false });
      await reaches(bytes);
      await reaches(bytes.buffer, { worker: false });
      await reaches(new Blob([bytes]));
      await reaches(new File([bytes], "model.gguf"), { worker: false });
      const reads = [];
      await reaches({
        length: bytes.length,
        read: async (offset, length) => {
          reads.push(length);
          return bytes.slice(offset, offset + length);
        },
      });
      assert(reads.length > 0 && Math.max(...reads) <= 16 << 20, "what was read");
      await reaches({ length: bytes.length, read: (offset, length) => bytes.buffer.slice(offset, offset + length) });

      // An inspection reads the header alone, agrees with loading, and fails as loading does.
      const ranges = [];
      const counted = { length: bytes.length, read: (offset, length) => (ranges.push([offset, length]), bytes.slice(offset, offset + length)) };
      const report = await inspect(counted, { backend: "gpu", context: 64 });
      const last = Math.max(...ranges.map(([offset, length]) => offset + length));
      assert(last < bytes.length / 2, `${last} of ${bytes.length} bytes were read`);
      assert.equal([report.architecture, report.format, report.bytes, report.context, report.residency], ["gemma4", "Q8_0", bytes.length, 64, "gpu"]);
      assert(report.name && report.parameters > 1e5 && report.largestContext === report.contextLength, JSON.stringify(report));
      const { needed, available, weights, caches, scratch, staging } = report.memory;
      assert(needed === weights + caches + scratch + staging && weights > 0 && available === null, JSON.stringify(report.memory));
      assert.equal([report.warnings, report.conversions], [[], []]);
      const remote = await inspect(url, { backend: "gpu", memory: 1e9, worker: false });
      assert.equal([remote.memory.available, remote.name, remote.context], [1e9, report.name, Math.min(4096, report.contextLength)]);
      const refused = await assert.fails(() => inspect(new Blob([bytes]), { backend: "gpu", memory: needed - 1, context: 64, residency: "gpu" }), "memory.too_large");
      assert.equal([refused.details.bytes, refused.details.fitsOnCpu], [needed, true]);
      assert(refused.message.endsWith('load it with `backend: "cpu"`'), refused.message);
      // Where the GPU is emulated, the CPU would compute.
      const auto = await inspect(url, { context: 64 });
      assert.equal([auto.backend.kind, auto.residency, auto.backend.reason.includes("emulates")], ["cpu", "cpu", true]);
      await assert.fails(() => inspect(new File(["%PDF-1.7 is a document"], "paper.pdf")), "gguf.not_gguf");
      await assert.fails(() => inspect(bytes.subarray(0, 2_000_000)), "gguf.truncated");
      await assert.fails(() => inspect([url, url]), "gguf.split");
      await assert.fails(() => inspect(url, { context: 1_000_000 }), "context.too_large");
      await assert.fails(() => inspect(url, { store: true }), "option.unknown");
      await assert.fails(() => inspect(url, { signal: AbortSignal.abort() }), "cancelled");

      // The browser's storage: through a synchronous handle in the worker, as a file on the page.
      const folder = await (await navigator.storage.getDirectory()).getDirectoryHandle("models", { create: true });
      const file = await folder.getFileHandle("micro.gguf", { create: true });
      const writable = await file.createWritable();
      await writable.write(bytes);
      await writable.close();
      await reaches({ opfs: "models/micro.gguf" });
      await reaches({ opfs: "models/micro.gguf" }, { worker: false });
      await assert.fails(() => load({ opfs: "models/none.gguf" }), "source.io");

      // Servers that hide the length, break off, or know no ranges.
      for (const odd of ["total", "broken"]) {
        // The CPU reads a small model at once.
        const engine = await load(`${url}?${odd}`, { backend: "cpu", context: 64 });
        assert.equal(engine.info.backend.kind, "cpu");
        await engine.unload();
      }
      await reaches(`${url}?total`);
      await reaches(`${url}?hidden`);
      await reaches(`${url}?whole`);
      await reaches(`${url}?broken`);
      await assert.fails(() => load(`${url}?missing`), "source.status");
      await assert.fails(() => load(`${url}?wrong`), "source.content_range");
      await assert.fails(() => load(`${url}?changing`), "source.changed");
      await assert.fails(() => load(`${origin}/models/none.gguf`), "source.status");
      await assert.fails(() => load([url, url]), "gguf.split");

      // Readers and files that are not what they should be.
      const failing = { length: 100, read: () => Promise.reject(new Error("no")) };
      const error = await assert.fails(() => load(failing), "source.other");
      assert.equal(error.message, "no");
      await assert.fails(() => load({ length: 100, read: () => new Uint8Array(1) }), "source.other");
      await assert.fails(() => load(new Uint8Array(100)), "gguf.not_gguf");
      await assert.fails(() => load(bytes.subarray(0, 2_000_000)), "gguf.truncated");
      await assert.fails(() => load(42), "option.wrong_type");
      await assert.fails(() => load(url, { contxt: 1 }), "option.unknown");
      await assert.fails(() => load(url, { kv: "q4" }), "option.wrong_type");
      await assert.fails(() => load(url, { context: 0 }), "option.out_of_range");
      await assert.fails(() => load(url, { context: 1_000_000 }), "context.too_large");
      const little = { memory: 9e6, residency: "gpu" };
      const large = await assert.fails(() => load(url, little), "memory.too_large");
      assert(large.details.bytes > 9e6 && large.details.largestContext > 0, JSON.stringify(large.details));
      await assert.fails(() => load(url, { signal: AbortSignal.abort() }), "cancelled");
      await assert.fails(() => load(url, { wasm: `${origin}/nothing.wasm` }), "internal");
      delete Navigator.prototype.gpu;
      await assert.fails(() => load(url, { worker: false, backend: "gpu" }), "device.unavailable");
    },
    expected: /404|503|403/,
    check(_value, requests) {
      const ranges = requests.filter(({ path, range }) => path === "/models/micro-e2b-Q8_0.gguf" && range);
      if (ranges.length === 0) {
        throw new Error("nothing was read by ranges");
      }
    },
  }),
  pageTest({
    title: "a stored model is checked while it is read, and options of the store are looked at",
    gpu: [],
    async body({ Engine, ModelStore }, { origin }, assert) {
      const url = `${origin}/models/micro-e2b-Q8_0.gguf`;
      const store = await ModelStore.open();
      const { name, bytes } = await store.download(url, { name: "damaged" });
      const folder = await (await navigator.storage.getDirectory()).getDirectoryHandle("rullama");
      const stream = await (await folder.getFileHandle("damaged.file")).createWritable({ keepExistingData: true });
      await stream.write({ type: "write", position: bytes - 1000, data: new Uint8Array(500).fill(77) });
      await stream.close();
      const seen = [];
      const onProgress = ({ status, file, loaded, total }) => seen.push({ status, file, loaded, total });
      const options = { backend: "gpu", selfTest: false, residency: "gpu", onProgress };
      const error = await assert.fails(() => Engine.load({ stored: name }, options), "storage.corrupt");
      assert(error.details.damaged?.[0]?.offset <= bytes - 1000, JSON.stringify(error.details));
      const checked = seen.filter(({ status }) => status === "verify").at(-1);
      assert(checked?.file === name && checked.total === bytes && checked.loaded < bytes, JSON.stringify(checked));
      // By the address, under the same name: found, and as damaged as it is.
      await assert.fails(() => Engine.load(url, { ...options, store: { name } }), "storage.corrupt");
      await store.delete(name);

      // A model that cannot run here is not downloaded.
      seen.length = 0;
      await assert.fails(() => Engine.load(url, { ...options, store: true, memory: 8e6 }), "memory.too_large");
      await assert.fails(() => Engine.load(url, { ...options, store: true, memory: 8e6, worker: false }), "memory.too_large");
      assert.equal(seen, []);
      assert.equal(await store.list(), []);
      await assert.reachesUpload(Engine, `${url}?whole`, { store: { name: "without ranges" } });
      await store.delete("without ranges");

      await assert.fails(() => Engine.load(url, { store: { sha256: "1" } }), "option.wrong_type");
      await assert.fails(() => Engine.load(url, { store: { sha512: "1" } }), "option.unknown");
      const split = `${origin}/models/micro-00001-of-00002.gguf`;
      await assert.fails(() => Engine.load(split, { store: { sha256: "0".repeat(64) } }), "option.wrong_type");
      await assert.fails(() => store.download("http://["), "option.wrong_type");
      store.close();
    },
  }),
  ownPage("a policy like that of a Chrome extension", "/pages/extension.html?extension"),
  ownPage("a page that Vite built", "/vite/index.html"),
  ownPage("a page with a worker of its own that Vite built", "/vite/own-worker.html"),
  ownPage("threads of an isolated page that Vite built", "/vite/index.html?isolated", { browsers: ["chromium"] }),
  ownPage("threads of an isolated page with a worker of its own that Vite built", "/vite/own-worker.html?isolated", { browsers: ["chromium"] }),
];
