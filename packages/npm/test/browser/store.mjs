// The store in a real browser: downloads that break off, reloads, damaged bytes, two tabs, a browser that is restarted.
//
// All steps share one profile on disk, in the order given: later ones find what earlier ones stored.

import { createHash, randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { SOON } from "../../../../xtask/browser/page.mjs";
import { TestServer } from "./store-server.mjs";

const MEBIBYTE = 1024 * 1024;
const PART = 16 * MEBIBYTE;
const BLOCK = MEBIBYTE;
const SIZE = 2 * PART + 3 * MEBIBYTE + 12345;

export async function setUp() {
  const server = new TestServer();
  await server.start();
  return { server, close: () => server.stop() };
}

/** Several facts of one step: a false one is told with what was found instead. */
function check(what, truth, found) {
  if (!truth) {
    throw new Error(`${what}: not so; ${JSON.stringify(found)} was found`);
  }
}

export const tests = [
  {
    title: "the store",
    profile: true,
    async run(t) {
      const { server } = t.shared;
      for (const [title, { browsers, run }] of Object.entries(steps)) {
        if (browsers.includes(t.browser.name)) {
          const browser = { tab: () => t.browser.defaultContext.newPage(), restart: () => t.restart() };
          await t.check(`the store: ${title}`, () => within(120_000, run({ browser, server, open: (tab) => openPage(tab, server) })));
          await t.browser.defaultContext.closePages();
        }
      }
    },
  },
];

/** A file that starts as GGUF does, with random bytes after that. */
function modelFile(size) {
  const content = randomBytes(size);
  content.write("GGUF", "latin1");
  return content;
}

const BOTH = ["chromium", "firefox"];

const steps = {
  "a download": { browsers: BOTH, async run({ browser, server, open }) {
    const content = modelFile(SIZE);
    server.add("whole.gguf", content, { etag: `"${digest(content)}"` });
    const page = await open(await browser.tab());
    const { model, events } = await page.evaluate(async () => {
      const events = [];
      const model = await store.download("/files/whole.gguf", { onProgress: (event) => events.push(event) });
      return { model, events };
    });
    check("a download is complete and proved by its ETag", model.complete && model.proof === "sha256" && model.sha256 === digest(content), model);
    check("every byte is sent once", server.sent("whole.gguf") === SIZE, server.sent("whole.gguf"));
    check("progress ends at 1", events.length > 1 && events.at(-1).progress === 1 && events.at(-1).overall === 1 && events.at(-1).total === SIZE, events.at(-1));
    const [listed] = await page.evaluate(() => store.list());
    check("it is listed", listed.name === "whole.gguf" && listed.storedBytes === SIZE && listed.complete, listed);
    await page.evaluate(() => store.download("/files/whole.gguf"));
    check("it is not fetched again", server.of("whole.gguf").length === 1, server.of("whole.gguf"));
    const read = await page.evaluate(async () => {
      const source = await store.source("whole.gguf");
      const bytes = [...await source.read(16777210, 12)];
      source.close();
      return bytes;
    });
    check("a window reads it", equal(read, content.subarray(16777210, 16777222)), read);
    const exported = await page.evaluate(async () => {
      const file = await store.export("whole.gguf");
      const hash = new Uint8Array(await crypto.subtle.digest("SHA-256", await file.arrayBuffer()));
      return { name: file.name, size: file.size, hash: Array.from(hash, (byte) => byte.toString(16).padStart(2, "0")).join("") };
    });
    check("it is exported whole, under its name", exported.name === "whole.gguf" && exported.hash === digest(content), exported);
    const space = await page.evaluate(() => store.estimate());
    check("the estimate counts it", space.usage >= SIZE && space.free > 0, space);
  } },

  "corruption": { browsers: BOTH, async run({ browser, server, open }) {
    const page = await open(await browser.tab());
    await page.evaluate(flipByte, { file: "whole.gguf.file", at: 16777216 + 99 });
    const error = await page.evaluate(tryIt, "store.verify('whole.gguf')");
    check("a corrupted byte is caught", error.code === "storage.corrupt" && error.message.includes("whole.gguf"), error);
    check("and its block is named", equal(error.details.damaged, [{ offset: PART, length: BLOCK }]), error.details);
    const read = await page.evaluate(tryIt, "store.source('whole.gguf').then((source) => source.read(16777216, 5).finally(() => source.close()))");
    check("nor is it read unnoticed", read.code === "storage.corrupt" && equal(read.details.damaged, error.details.damaged), read);
    const before = server.sent("whole.gguf");
    await page.evaluate(() => store.verify("whole.gguf", { repair: true }));
    check("repair fetches that block alone", server.sent("whole.gguf") - before === BLOCK, server.sent("whole.gguf") - before);
    const again = await page.evaluate(tryIt, "store.verify('whole.gguf')");
    check("and then all is well", again.value?.repaired.length === 0, again);
  } },

  "two tabs reading, and deleting": { browsers: BOTH, async run({ browser, server, open }) {
    const content = server.files.get("whole.gguf").content;
    const one = await open(await browser.tab());
    const two = await open(await browser.tab());
    const answers = [];
    for (const page of [one, two]) {
      await page.evaluate(() => { window.reader = new Worker("/pages/reader-worker.js", { type: "module" }); });
      answers.push(await page.evaluate(askReader, { open: "whole.gguf", read: [100, 8] }));
    }
    check(`two tabs read one file at once (shared handles: ${answers[0].shared})`, answers.every(({ bytes }) => equal(bytes, content.subarray(100, 108))), answers);
    const busy = await two.evaluate(tryIt, "store.delete('whole.gguf')");
    check("it is not deleted under a reader", busy.code === "storage.busy", busy);
    await one.evaluate(askReader, { close: true });
    await two.evaluate(askReader, { close: true });
    await two.evaluate(() => store.delete("whole.gguf"));
    const left = await one.evaluate(filesLeft);
    check("deleting leaves no file", left.length === 0 && (await one.evaluate(() => store.list())).length === 0, left);
  } },

  "aborting and resuming": { browsers: BOTH, async run({ browser, server, open }) {
    const content = modelFile(SIZE);
    server.add("abort.gguf", content, { pause: 10 });
    const page = await open(await browser.tab());
    const error = await page.evaluate(abortAt, { url: "/files/abort.gguf", bytes: 5 * 1024 * 1024 });
    const [half] = await page.evaluate(() => store.list());
    check("an abort rejects with `cancelled`", error.code === "cancelled", error);
    check("and keeps what is there", !half.complete && half.storedBytes >= 5 * MEBIBYTE && half.storedBytes < SIZE, half);
    const missing = await page.evaluate(tryIt, "store.source('abort.gguf')");
    check("a half file is not opened", missing.code === "storage.missing", missing);
    server.files.get("abort.gguf").pause = 0;
    const model = await page.evaluate(() => store.download("/files/abort.gguf"));
    const last = server.of("abort.gguf").at(-1);
    check("resuming starts at the very byte", last.range === `bytes=${half.storedBytes}-` && last.ifRange === '"abort.gguf-1"', last);
    check("and fetches only the rest", last.sent === SIZE - half.storedBytes, last);
    check("the result is right", model.sha256 === digest(content), model);
  } },

  "connections that break": { browsers: BOTH, async run({ browser, server, open }) {
    const content = modelFile(SIZE);
    server.add("cut.gguf", content, { cuts: [3_000_001, 17_000_003, 5] });
    const page = await open(await browser.tab());
    const model = await page.evaluate(() => store.download("/files/cut.gguf"));
    check("broken connections are mended", model.sha256 === digest(content), model);
    check("with no byte sent twice", server.of("cut.gguf").length === 4 && server.sent("cut.gguf") === SIZE, server.of("cut.gguf"));
  } },

  "a server of another origin": { browsers: BOTH, async run({ browser, server, open }) {
    const content = modelFile(SIZE);
    server.add("cross.gguf", content, { cuts: [4_000_000] });
    const page = await open(await browser.tab());
    const model = await page.evaluate((url) => store.download(url), `${server.otherOrigin}/files/cross.gguf`);
    const requests = server.of("cross.gguf");
    check("it resumes without a preflight and without visible headers", model.sha256 === digest(content) && requests.every(({ method, ifRange }) => method === "GET" && ifRange === null), requests);
    check("and sends no byte twice", server.sent("cross.gguf") === SIZE, requests);
  } },

  "reloading in the middle": { browsers: BOTH, async run({ browser, server, open }) {
    const content = modelFile(SIZE);
    server.add("reload.gguf", content, { pause: 20 });
    const tab = await browser.tab();
    let page = await open(tab);
    await page.evaluate(startAndReach, { url: "/files/reload.gguf", bytes: 18 * 1024 * 1024 });
    await tab.reload();
    page = await open(tab, { stay: true });
    const half = (await page.evaluate(() => store.list())).find(({ name }) => name === "reload.gguf");
    check("after a reload what was recorded is there", !half.complete && half.storedBytes >= PART, half);
    server.files.get("reload.gguf").pause = 0;
    const model = await page.evaluate(() => store.download("/files/reload.gguf"));
    const last = server.of("reload.gguf").at(-1);
    check("the download goes on from there", last.range === `bytes=${half.storedBytes}-` && last.sent === SIZE - half.storedBytes, last);
    check("and is right", model.sha256 === digest(content), model);
  } },

  "a changed file": { browsers: BOTH, async run({ browser, server, open }) {
    const file = server.add("changed.gguf", modelFile(SIZE), { pause: 10 });
    const page = await open(await browser.tab());
    await page.evaluate(abortAt, { url: "/files/changed.gguf", bytes: 4 * 1024 * 1024 });
    file.content = modelFile(SIZE);
    file.etag = '"changed.gguf-2"';
    file.pause = 0;
    const model = await page.evaluate(() => store.download("/files/changed.gguf"));
    check("a file that changed is fetched anew, not mixed", model.sha256 === digest(file.content), model);
  } },

  "two tabs downloading": { browsers: BOTH, async run({ browser, server, open }) {
    const content = modelFile(SIZE);
    server.add("both.gguf", content, { pause: 20 });
    const pages = [await open(await browser.tab()), await open(await browser.tab())];
    const results = await Promise.all(pages.map((page) => page.evaluate(async () => {
      const events = [];
      const model = await store.download("/files/both.gguf", { onProgress: ({ loaded }) => events.push(loaded) });
      return { model, events };
    })));
    check("two tabs fetch a file once", server.of("both.gguf").length === 1 && server.sent("both.gguf") === SIZE, server.of("both.gguf"));
    check("both get it", results.every(({ model }) => model.sha256 === digest(content)), results.map(({ model }) => model));
    check("both see progress", results.every(({ events }) => events.length > 2 && events.at(-1) === SIZE), results.map(({ events }) => events.length));
  } },

  "a tab that goes away": { browsers: BOTH, async run({ browser, server, open }) {
    const content = modelFile(SIZE);
    server.add("taken.gguf", content, { pause: 20 });
    const first = await browser.tab();
    const one = await open(first);
    const two = await open(await browser.tab());
    await one.evaluate(startAndReach, { url: "/files/taken.gguf", bytes: 17 * 1024 * 1024 });
    const waiting = two.evaluate(() => store.download("/files/taken.gguf"));
    // It is waiting for the first tab's lock when the browser lists it so.
    await two.evaluate(async () => {
      while ((await navigator.locks.query()).pending.length === 0) await new Promise((resolve) => setTimeout(resolve, 20));
    });
    await first.close();
    server.files.get("taken.gguf").pause = 0;
    const model = await waiting;
    const ranges = server.of("taken.gguf").map(({ range }) => range);
    check("when a tab is closed the other takes its download over", model.sha256 === digest(content) && ranges.length === 2 && ranges[1] !== "bytes=0-", ranges);
  } },

  "room and wrong files": { browsers: BOTH, async run({ browser, server, open }) {
    server.add("huge.gguf", modelFile(1000), { claims: 4e15 });
    server.add("wrong.gguf", modelFile(100_000), { etag: `"sha256:${"0".repeat(64)}"` });
    const page = await open(await browser.tab());
    const huge = await page.evaluate(tryIt, "store.download('/files/huge.gguf')");
    check("a file too large is refused with its size and the room", huge.code === "storage.quota" && huge.details.needed === 4e15 && huge.details.free > 0, huge);
    const wrong = await page.evaluate(tryIt, "store.download('/files/wrong.gguf')");
    check("a file with another hash than promised is refused", wrong.code === "storage.corrupt", wrong);
    const absent = await page.evaluate(tryIt, "store.download('/files/absent.gguf')");
    check("a missing file is told with its status", absent.code === "source.status" && absent.details.status === 404, absent);
    server.add("login.gguf", Buffer.from("<!doctype html><title>Sign in</title>".padEnd(1_000_000)), { pause: 50 });
    const page404 = await page.evaluate(tryIt, "store.download('/files/login.gguf')");
    check("a file that is not GGUF is refused at its first bytes", page404.code === "gguf.not_gguf" && server.sent("login.gguf") < 1_000_000, page404);
    const picture = await page.evaluate(tryIt, "store.import(new File([new Uint8Array([137, 80, 78, 71, 13, 10])], 'picture.gguf'))");
    check("so is one that is imported", picture.code === "gguf.not_gguf", picture);
    const nowhere = await page.evaluate(tryIt, "store.download('http://127.0.0.1:9/nowhere.gguf')");
    check("a server that cannot be reached is named", nowhere.code === "source.connection" && /127\.0\.0\.1:9 could not be reached/.test(nowhere.message), nowhere);
    const left = (await page.evaluate(() => store.list())).map(({ name }) => name);
    check("nothing of them stays", !left.some((name) => /huge|wrong|absent|login|picture|nowhere/.test(name)), left);
  } },

  "room that runs out on the way": { browsers: ["chromium"], async run({ browser, server, open }) {
    const content = modelFile(SIZE);
    server.add("full.gguf", content, { pause: 20 });
    const page = await open(await browser.tab());
    const { usage } = await page.evaluate(() => store.estimate());
    const download = page.evaluate(tryIt, "store.download('/files/full.gguf')");
    while (server.sent("full.gguf") < 5 * MEBIBYTE) await sleep(20);
    // Only Chromium lets tests limit the room. The limit lasts as long as the session.
    const devtools = await page.raw.createCDPSession();
    const limit = { origin: server.origin, quotaSize: usage + 12 * MEBIBYTE };
    await devtools.send("Storage.overrideQuotaForOrigin", limit);
    const error = await download;
    check("room that runs out on the way is told", error.code === "storage.quota" && error.details.needed > 0, error);
    const half = (await page.evaluate(() => store.list())).find(({ name }) => name === "full.gguf");
    check("what was stored is kept", half?.storedBytes > 0 && !half.complete, half);
    await devtools.send("Storage.overrideQuotaForOrigin", { origin: server.origin });
    server.files.get("full.gguf").pause = 0;
    const model = await page.evaluate(() => store.download("/files/full.gguf"));
    check("and finished when there is room", model.sha256 === digest(content) && server.of("full.gguf").at(-1).range === `bytes=${half?.storedBytes}-`, server.of("full.gguf"));
  } },

  "replacing": { browsers: BOTH, async run({ browser, server, open }) {
    const content = modelFile(SIZE);
    const file = server.add("replaced.gguf", content);
    const page = await open(await browser.tab());
    await page.evaluate(() => store.download("/files/replaced.gguf"));
    await page.evaluate(() => store.download("/files/replaced.gguf", { replace: true }));
    check("a file that did not change is not fetched again", server.sent("replaced.gguf") < SIZE + MEBIBYTE, server.of("replaced.gguf"));
    Object.assign(file, { content: modelFile(SIZE - 5), etag: '"replaced.gguf-2"', pause: 10 });
    await page.evaluate(abortAt, { url: "/files/replaced.gguf", bytes: 5 * 1024 * 1024, options: { replace: true } });
    const kept = await page.evaluate(tryIt, "store.verify('replaced.gguf')");
    check("the old file is kept until the new one is whole", kept.value?.sha256 === digest(content), kept);
    file.pause = 0;
    const model = await page.evaluate(() => store.download("/files/replaced.gguf", { replace: true }));
    const last = server.of("replaced.gguf").at(-1);
    check("which goes on where it stopped", model.sha256 === digest(file.content) && last.range !== "bytes=0-", last);
    const now = await page.evaluate(tryIt, "store.verify('replaced.gguf')");
    const left = (await page.evaluate(filesLeft)).filter((name) => name.startsWith("replaced"));
    check("and then is all there is", now.value?.sha256 === digest(file.content) && left.length === 2, { now, left });
  } },

  "importing": { browsers: BOTH, async run({ browser, open }) {
    const page = await open(await browser.tab());
    const { model, code } = await page.evaluate(async () => {
      const bytes = new Uint8Array(20_000_000).map((_, i) => (i < 4 ? [71, 71, 85, 70][i] : (i * 31) >> 3));
      const model = await store.import(new File([bytes], "mine.gguf"));
      const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
      const expected = Array.from(digest, (byte) => byte.toString(16).padStart(2, "0")).join("");
      const again = await store.import(new File([bytes], "mine.gguf")).catch((error) => error);
      return { model: { ...model, expected }, code: again.code };
    });
    check("a file of the user's is stored", model.complete && model.sha256 === model.expected, model);
    check("and not overwritten unasked", code === "storage.exists", code);
  } },

  "restarting the browser": { browsers: BOTH, async run({ browser, server, open }) {
    const content = modelFile(SIZE);
    server.add("restart.gguf", content, { pause: 20 });
    const before = await open(await browser.tab());
    await before.evaluate(startAndReach, { url: "/files/restart.gguf", bytes: 18 * 1024 * 1024 });
    await browser.restart();
    const page = await open(await browser.tab());
    const models = await page.evaluate(() => store.list());
    const half = models.find(({ name }) => name === "restart.gguf");
    check("whole and half files outlive the browser", half?.storedBytes >= PART && models.some(({ name, complete }) => name === "cut.gguf" && complete), models);
    server.files.get("restart.gguf").pause = 0;
    const model = await page.evaluate(() => store.download("/files/restart.gguf"));
    check("and the half one is finished", model.sha256 === digest(content) && server.of("restart.gguf").at(-1).range === `bytes=${half?.storedBytes}-`, server.of("restart.gguf"));
    const verified = await page.evaluate(tryIt, "store.verify('cut.gguf')");
    check("the whole one is still right", verified.value?.repaired.length === 0, verified);
  } },
};

/** Opens the page in a tab and waits for the store. */
async function openPage(tab, server, { stay = false } = {}) {
  if (!stay) await tab.goto(`${server.origin}/`);
  await tab.evaluate(async (soon) => {
    for (let waited = 0; waited < soon && !window.store; waited += 50) {
      if (window.failed) throw new Error(window.failed);
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    if (!window.store) throw new Error("the store did not open");
  }, SOON);
  return tab;
}

// What follows runs in the page.

async function tryIt(expression) {
  try {
    return { value: await eval(expression) };
  } catch (error) {
    return { code: error.code ?? error.name, message: error.message, details: error.details };
  }
}

async function abortAt({ url, bytes, options }) {
  const control = new AbortController();
  try {
    await store.download(url, { ...options, signal: control.signal, onProgress: ({ loaded }) => { if (loaded >= bytes) control.abort(); } });
    return { code: "it succeeded" };
  } catch (error) {
    return { code: error.code };
  }
}

function startAndReach({ url, bytes }) {
  return new Promise((resolve, reject) => {
    store.download(url, { onProgress: ({ loaded }) => { if (loaded >= bytes) resolve(); } }).catch(reject);
  });
}

function askReader(message) {
  return new Promise((resolve) => {
    reader.onmessage = ({ data }) => resolve(data);
    reader.postMessage(message);
  });
}

async function flipByte({ file, at }) {
  const folder = await (await navigator.storage.getDirectory()).getDirectoryHandle("rullama");
  const handle = await folder.getFileHandle(file);
  const byte = new Uint8Array(await (await handle.getFile()).slice(at, at + 1).arrayBuffer());
  byte[0] ^= 1;
  const stream = await handle.createWritable({ keepExistingData: true });
  await stream.write({ type: "write", position: at, data: byte });
  await stream.close();
}

async function filesLeft() {
  const folder = await (await navigator.storage.getDirectory()).getDirectoryHandle("rullama");
  const names = [];
  for await (const name of folder.keys()) names.push(name);
  return names;
}

function digest(bytes) {
  return createHash("sha256").update(bytes).digest("hex");
}

function equal(a, b) {
  const plain = (value) => JSON.stringify(value instanceof Uint8Array ? [...value] : value);
  return plain(a) === plain(b);
}

function within(milliseconds, promise) {
  const late = sleep(milliseconds, undefined, { ref: false }).then(() => {
    throw new Error(`not done after ${milliseconds / 1000} s`);
  });
  return Promise.race([promise, late]);
}
