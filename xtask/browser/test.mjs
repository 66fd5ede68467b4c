// Runs the browser tests: `node xtask/browser/test.mjs [chromium] [firefox] [--only TEXT] [--quick] [--jobs N] [FILE…]`.
//
// A test file exports `tests` and, if its tests share something such as a server, `setUp(browser's name)`, which gives it with a
// `close()`. A test is an object:
//
//   title     what must hold
//   browsers  the names of those it runs in; both, unless given
//   gpu       features of WebGPU's adapter that it needs, such as ["subgroups"]; [] is any adapter. Without it, no GPU is needed
//   webgpu    false for a browser without WebGPU, as many people have: Firefox has none then, Chromium finds no GPU for it
//   profile   whether it gets a browser of its own with a profile on disk, and can restart it
//   drives    whether it starts the browser itself, by another driver; then `t.browser` is undefined
//   quick     whether it is one of the few that `--quick` runs
//   run(t)    throws what is wrong. `t.browser` is the browser, `t.shared` what `setUp` gave, and `t.check(title, body)` counts one
//             step of a longer test by itself: a step that fails does not end the test
//
// The tests of one file in one browser are a job: they share a browser and run one after the other. Three jobs run at a time, unless
// told otherwise: a browser without a GPU keeps about one core busy while it compiles kernels, and tests of downloads mostly wait. A browser
// or an adapter that is missing fails its tests.

import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join, relative, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
import { advice, NAMES, start } from "./browsers.mjs";

const MINUTES = 40;
const root = fileURLToPath(new URL("../../", import.meta.url));

/** Every file of tests, those that take longest first, so that no long one is left at the end. */
const FILES = [
  "packages/npm/test/browser/engine.mjs",
  "packages/app/test/e2e/tests.mjs",
  "xtask/phone/test.mjs",
  "xtask/browser/kernels.mjs",
  "packages/npm/test/browser/pages.mjs",
  "packages/npm/test/browser/store.mjs",
  "packages/npm/test/browser/media.mjs",
];

/** Folders in which every module that exports `tests` must be in that list: a file that is missing there would never run. */
const FOLDERS = ["packages/npm/test/browser", "packages/app/test/e2e", "xtask/phone", "xtask/browser"];

const usage = "usage: node xtask/browser/test.mjs [chromium] [firefox] [--only TEXT] [--quick] [--jobs N] [FILE…]";
let options;
try {
  options = parseArgs({ options: { only: { type: "string" }, quick: { type: "boolean" }, jobs: { type: "string", default: "3" } }, allowPositionals: true });
} catch (error) {
  console.error(`${error.message}\n${usage}`);
  process.exit(2);
}
const { only, quick } = options.values;
const names = options.positionals.filter((word) => NAMES.includes(word));
const paths = options.positionals.filter((word) => !NAMES.includes(word)).map((path) => resolve(path));

for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) {
  // puppeteer ends its browsers when this process exits.
  process.on(signal, () => process.exit(1));
}
setTimeout(() => {
  console.error(`not done after ${MINUTES} minutes`);
  process.exit(1);
}, MINUTES * 60_000).unref();

const unlisted = await unlistedFiles();
if (unlisted.length > 0) {
  console.error(`FILES in xtask/browser/test.mjs does not list ${unlisted.join(", ")}, which would never run`);
  process.exit(1);
}

// Each browser removes its files at exit.
process.setMaxListeners(100);
const counts = { passed: 0, failed: 0, skipped: 0 };
const files = [];
for (const path of paths.length > 0 ? paths : FILES.map((file) => join(root, file))) {
  const { tests, setUp } = await import(pathToFileURL(path));
  files.push({ name: relative(root, path), tests, setUp });
}
const started = Date.now();
const jobs = files.flatMap((file) => (names.length > 0 ? names : NAMES).map((name) => ({ name, file })));
const waiting = jobs.values();
const work = async () => {
  for (const { name, file } of waiting) {
    await runJob(name, file);
  }
};
await Promise.all(Array.from({ length: Number(options.values.jobs) || 1 }, work));
const { passed, failed, skipped } = counts;
const good = failed === 0 && passed > 0;
console.log(`in ${seconds(started)} s`);
console.log(`test result: ${good ? "ok" : "FAILED"}. ${passed} passed; ${failed} failed; ${skipped} skipped`);
process.exit(good ? 0 : 1);

/** Files that export tests and that nobody listed. */
async function unlistedFiles() {
  const found = await Promise.all(
    FOLDERS.map(async (folder) => {
      const names = await readdir(join(root, folder), { recursive: true });
      const paths = names.filter((name) => name.endsWith(".mjs") && !name.includes("node_modules")).map((name) => join(folder, name).replaceAll("\\", "/"));
      const texts = await Promise.all(paths.map((path) => readFile(join(root, path), "utf8")));
      return paths.filter((path, index) => /^export (const|let|function) tests\b|^export \{[^}]*\btests\b/m.test(texts[index]) && !FILES.includes(path));
    }),
  );
  return found.flat();
}

/** Runs the tests of one file in one browser. */
async function runJob(name, file) {
  const wanted = ({ title, browsers = NAMES, quick: isQuick = false }) =>
    browsers.includes(name) && (only === undefined || `${file.name}: ${title}`.includes(only)) && (!quick || isQuick);
  const tests = file.tests.filter(wanted);
  if (tests.length === 0) {
    return;
  }
  const since = Date.now();
  const job = { name };
  try {
    job.shared = await file.setUp?.(name);
    for (const test of tests) {
      await runTest(job, test);
    }
  } catch (error) {
    report(name, `${file.name} can be set up`, since, error);
  }
  await job.browser?.close();
  await job.withoutWebGpu?.close();
  await job.shared?.close();
  console.log(`${name}: ${file.name} took ${seconds(since)} s`);
}

/** Runs one test; counts it, or its steps. */
async function runTest(job, test) {
  const { name } = job;
  const since = Date.now();
  let steps = 0;
  let profile;
  const t = {
    shared: job.shared,
    async check(title, body) {
      steps += 1;
      const stepSince = Date.now();
      try {
        await body();
        report(name, title, stepSince);
      } catch (error) {
        report(name, title, stepSince, error);
      }
    },
    /** Ends a browser with a profile on disk and starts it again there. */
    async restart() {
      await t.browser.close();
      t.browser = await start(name, { profile });
    },
  };
  try {
    if (test.profile) {
      profile = await mkdtemp(join(tmpdir(), "rullama-profile-"));
      t.browser = await start(name, { profile });
    } else if (!test.drives) {
      const webgpu = test.webgpu ?? true;
      const place = webgpu ? "browser" : "withoutWebGpu";
      // A browser that crashed in the test before is replaced.
      if (!job[place]?.raw.connected) {
        job[place] = await start(name, { webgpu });
      }
      t.browser = job[place];
    }
    if (test.gpu) {
      job.features ??= await adapterFeatures(t.browser);
      const missing = test.gpu.filter((feature) => !job.features.includes(feature));
      if (missing.length > 0) {
        counts.skipped += 1;
        return console.log(`skipped ${name}: ${test.title}: its adapter has no ${missing.join(", ")}`);
      }
    }
    await test.run(t);
    if (steps === 0) {
      report(name, test.title, since);
    }
  } catch (error) {
    report(name, steps === 0 ? test.title : `${test.title}, after its last step`, since, error);
  } finally {
    if (profile) {
      await t.browser?.close();
      await rm(profile, { recursive: true, force: true });
    }
  }
}

function report(name, title, since, error) {
  const took = `(${seconds(since)} s)`;
  if (error === undefined) {
    counts.passed += 1;
    console.log(`ok      ${name}: ${title} ${took}`);
  } else {
    counts.failed += 1;
    const cause = error.cause ? `\ncaused by ${error.cause.stack ?? error.cause}` : "";
    console.log(`FAILED  ${name}: ${title} ${took}\n        ${`${error.stack ?? error}${cause}`.replaceAll("\n", "\n        ")}`);
  }
}

/** The features of the browser's WebGPU adapter. Its absence fails the test that asked. */
async function adapterFeatures(browser) {
  // WebGPU needs a secure context, which a page from 127.0.0.1 is.
  const server = createServer((_request, response) => response.writeHead(200, { "content-type": "text/html" }).end("<!doctype html>"));
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  const context = await browser.newContext();
  try {
    const page = await context.newPage();
    await page.goto(`http://127.0.0.1:${server.address().port}/`);
    const features = await page.evaluate(async () => {
      const adapter = await navigator.gpu?.requestAdapter();
      return adapter ? [...adapter.features] : null;
    });
    if (features === null) {
      throw new Error(`no WebGPU adapter (${browser.program}). Known to work on Debian:\n  ${advice(browser.name)}`);
    }
    return features;
  } finally {
    await context.close();
    server.closeAllConnections();
    server.close();
  }
}

function seconds(since) {
  return ((Date.now() - since) / 1000).toFixed(1);
}
