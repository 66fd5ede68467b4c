// Without a network, without a GPU for a moment, and without one at all.

import { App } from "./app.mjs";
import { assert, equal } from "../../../../xtask/browser/assert.mjs";
import { equalTroubles } from "./models.mjs";

export async function offline(checks, app, line) {
  const { page } = app;
  await checks.check("without a network the app opens, and a stored model is loaded and answers", async () => {
    await app.withoutNetwork(line, async () => {
      await page.waitForSelector(".message");
      await app.shot("offline");
      await app.ask("Are you there?");
      equal((await app.messages()).at(-1).state, "complete", "state");
    });
  });
}

export async function cached(checks, { page }) {
  await checks.check("nothing but the app's own files is kept by the service worker", async () => {
    const kept = await page.evaluate(async () => {
      const names = await caches.keys();
      const requests = await Promise.all(names.map(async (name) => (await caches.open(name)).keys()));
      return { caches: names.length, urls: requests.flat().map(({ url }) => new URL(url).pathname) };
    });
    equal(kept.caches, 1, "caches");
    assert(kept.urls.includes("/index.html") && kept.urls.some((url) => url.endsWith(".wasm")), kept.urls.join(" "));
    equal(kept.urls.filter((url) => /gguf|^\/api/.test(url)), [], "what must not be kept");
  });
}

export async function newVersion(checks, browser, server) {
  const app = await App.open(browser, server.origin, { hash: "#/models" });
  const { page } = app;
  const other = await app.context.newPage();
  await checks.check("a new version takes over in one tab; another keeps its files, and is offered to reload", async () => {
    await app.controlled();
    await other.goto(page.url());
    await other.waitForFunction(() => navigator.serviceWorker.controller !== null);
    // A file of this build that the next one does not have.
    await page.evaluate(async () => {
      const [name] = await caches.keys();
      await (await caches.open(name)).put("assets/of-this-build.js", new Response("still here"));
    });
    server.behaviour.newer = true;
    await page.evaluate(async () => void (await (await navigator.serviceWorker.getRegistration()).update()));
    await page.waitForSelector(".notice >> text=A new version is ready");
    await other.waitForSelector(".notice >> text=A new version is ready");
    await page.evaluate(() => void (globalThis.old = true));
    await page.click(".notice >> text=Reload");
    await page.waitForFunction(() => globalThis.old === undefined && document.querySelector("main > *") !== null);
    await other.waitForSelector(".notice >> text=in use in another tab");
    const kept = () => other.evaluate(async () => (await fetch("assets/of-this-build.js")).text());
    equal(await kept(), "still here", "a file of the old build");
    await other.evaluate(() => void (globalThis.old = true));
    await other.click(".notice >> text=Reload");
    await other.waitForFunction(() => globalThis.old === undefined && document.querySelector("main > *") !== null);
  });
  server.behaviour.newer = false;
  await app.close();
}

/** A server that takes a connection and then says nothing, as on a train. */
export async function silentServer(checks, browser, server) {
  const app = await App.open(browser, server.origin);
  const { page } = app;
  await checks.check("the app opens where the server says nothing", async () => {
    await app.controlled();
    server.behaviour.silent = true;
    await page.leaveFor(`${server.origin}/#/models`);
    await page.waitForSelector("text=From an address");
  });
  server.behaviour.silent = false;
  await app.close();
}

/**
 * In the page, before the app: calls `globalThis.inTheMiddle(worker, call)` once, if a check has set it, after eight deltas of a
 * reply, or after `inTheMiddle.after`. A reply could be over before a check outside the page has seen it begin.
 */
export function watchReplies() {
  const post = Worker.prototype.postMessage;
  Worker.prototype.postMessage = function (message, ...rest) {
    if (message?.kind === "call" && message.name === "chat") {
      let deltas = 0;
      this.addEventListener("message", ({ data }) => {
        deltas += data.kind === "event" && data.id === message.id ? 1 : 0;
        if (deltas === (globalThis.inTheMiddle?.after ?? 8) && globalThis.inTheMiddle) {
          const { inTheMiddle } = globalThis;
          delete globalThis.inTheMiddle;
          // After the app has heard of it as well.
          setTimeout(() => inTheMiddle(this, message.id));
        }
      });
    }
    return post.call(this, message, ...rest);
  };
}

/** Only Chromium lets its GPU process be ended from outside. */
export async function lostProcess(checks, app, browser) {
  const { page } = app;
  await checks.check("when the browser's GPU process dies, the answer goes on", async () => {
    await page.click(".sidebar >> text=New chat");
    await app.setMaximum(24);
    const session = await browser.devtools();
    await app.begin("Go on");
    await session.send("Browser.crashGpuProcess");
    await app.answered();
    equal((await app.messages()).at(-1).state, "complete", "state");
    await app.setMaximum(8);
    await app.ask("Still there?");
    equal((await app.messages()).map(({ state }) => state), ["complete", "complete", "complete", "complete"], "states");
  });
}

export async function lostDevice(checks, app) {
  const { page } = app;
  await checks.check("a device that is lost for good is told in words, and Try again brings an answer", async () => {
    await page.click(".sidebar >> text=New chat");
    await app.setMaximum(300);
    await page.evaluate(() => {
      globalThis.inTheMiddle = (worker, call) => {
        const error = { code: "device.lost", message: "the GPU is gone", details: {} };
        worker.dispatchEvent(new MessageEvent("message", { data: { kind: "failed", id: call, error } }));
      };
    });
    await app.send("Once more");
    await page.waitForSelector('.error-box[data-code="device.lost"]', { timeout: app.patience });
    await app.shot("device-lost");
    const lost = (await app.messages()).at(-1);
    assert(lost.state === "failed" && lost.text.length > 2, `what was said is gone: ${JSON.stringify(lost)}`);
    await app.setMaximum(8);
    await page.click(".error-box >> text=Try again");
    await page.waitForSelector('.message:last-child[data-state="complete"]', { timeout: app.patience });
    equal((await app.messages()).at(-1).place, "2/2", "place");
  });

  await checks.check("an engine that the browser ended is loaded again, and the chat is still there", async () => {
    // What is asked first is answered at length, which not everything is by so small a model.
    await page.click(".sidebar >> text=New chat");
    await app.setMaximum(300);
    await page.evaluate(() => {
      globalThis.inTheMiddle = (worker) => {
        worker.terminate();
        worker.dispatchEvent(new ErrorEvent("error", { message: "it is gone" }));
      };
    });
    await app.send("Once more");
    await page.waitForSelector('.message .error-box[data-code="worker.failed"]', { timeout: app.patience });
    await app.setMaximum(8);
    await page.click(".message .error-box >> text=Load the model and try again");
    await page.waitForSelector('.message:last-child[data-state="complete"]', { timeout: app.patience });
    equal((await app.messages()).map(({ role }) => role), ["user", "assistant"], "messages");
  });
}

export async function withoutWebGpu(checks, browser, origin) {
  const before = () => Object.defineProperty(Navigator.prototype, "gpu", { get: () => undefined });
  const app = await App.open(browser, origin, { before });
  await checks.check("without WebGPU a page says what to do, and conversations can still be read", async () => {
    const text = await app.page.locator("main").innerText();
    assert(text.includes("This browser has no WebGPU") && /chrome:\/\/|about:config/.test(text), text);
    await app.shot("no-webgpu");
    assert(await app.page.locator('[aria-label="Import chats"]').isVisible(), "no way to conversations");
  });
  await equalTroubles(checks, app, "without WebGPU");
  await app.close();

  const none = () => {
    const { gpu } = navigator;
    gpu.requestAdapter = async () => null;
  };
  const other = await App.open(browser, origin, { before: none });
  await checks.check("without an adapter a page says so", async () => {
    assert((await other.page.locator("h1").innerText()) === "No GPU is available", await other.page.locator("h1").innerText());
  });
  await other.close();
}
