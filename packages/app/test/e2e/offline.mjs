// Without a network, without an engine for a moment, and without WebGPU.

import { faultsOf, settled } from "./access.mjs";
import { App, PHONE, WIDE } from "./app.mjs";
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
          // After the app has heard of it as well, whose listener came first; and before the next delta, with which a short
          // reply could be over.
          queueMicrotask(() => inTheMiddle(this, message.id));
        }
      });
    }
    return post.call(this, message, ...rest);
  };
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

/** On the CPU, in a browser that has no WebGPU, everything is there; what is said of it is no apology. */
export async function withoutWebGpu(checks, browser, origin) {
  const app = await App.open(browser, origin, { settings: { seed: 7 } });
  const { page } = app;
  // Firefox has no WebGPU then; Chromium has it, but no GPU for it.
  const [reason, verdict] = browser.name === "firefox" ? ["WebGPU is not available", "has no WebGPU"] : ["The browser found no GPU", "found no GPU"];
  await checks.check("without WebGPU the demo model answers on the CPU, and the page says so", async () => {
    await page.waitForSelector(".welcome .backend-line >> text=The CPU computes here");
    await app.shot("no-webgpu");
    await page.click(".questions >> text=What is rullama?");
    await page.waitForSelector(".message.assistant");
    await app.answered();
    const { state, text } = (await app.messages()).at(-1);
    assert(state === "complete" && /Gemma 4|browser/.test(text), `${state}: ${text}`);
    await app.shot("no-webgpu-answer");
    await app.go("#/models");
    await page.waitForSelector(`.card.current .backend-line >> text=The CPU computes. ${reason}`);
    await app.shot("no-webgpu-models");
  });

  await checks.check("the Device page tells how fast the CPU is, and how to use a GPU", async () => {
    await app.go("#/device");
    equal(await page.locator(".device-verdict h2").innerText(), `The CPU computes: this browser ${verdict}`, "verdict");
    await page.click("summary >> text=How to use the GPU");
    const text = await page.locator(".device-verdict").innerText();
    assert(/chrome:\/\/|about:config/.test(text), text);
    equal(await page.locator("text=Run the self-test").count(), 0, "self-tests of no GPU");
    assert(await page.locator("text=Run the benchmark").isVisible(), "no benchmark");
    await app.shot("no-webgpu-device");
  });

  await checks.check("whoever asks for the GPU is told that there is none, and is back on the CPU by one press", async () => {
    await page.click('[aria-label="Settings"]');
    await page.select('[data-setting="backend"]', "gpu");
    await page.waitForSelector("dialog >> text=Now the CPU computes. Load the model again to change it.");
    await page.locator("dialog >> text=Load again").scrollIntoView();
    await app.shot("no-webgpu-settings");
    await page.click("dialog >> text=Load again");
    await app.dialogClosed();
    await page.waitForSelector(".notice >> text=The settings ask for the GPU");
    await page.click('.notice [aria-label="Dismiss"]');
    // The model that ran is there again, where it was.
    await app.ready();
    await app.go("#/models");
    await page.waitForSelector(".card.current .backend-line >> text=The CPU computes");
    await page.click('[aria-label="Settings"]');
    await page.select('[data-setting="backend"]', "auto");
    await app.leaveDialog();
  });

  if (browser.name === "chromium") {
    await looks(checks, app);
  }
  await equalTroubles(checks, app, "without WebGPU");
  await app.close();
}

/** Every page without WebGPU in both colours, wide and on a phone. Media are emulated in Chromium only. */
async function looks(checks, app) {
  const { page } = app;
  await checks.check("labels, contrast and width without WebGPU", async () => {
    for (const [size, viewport] of [["wide", WIDE], ["phone", PHONE]]) {
      await page.setViewport(viewport);
      for (const colorScheme of ["light", "dark"]) {
        await page.emulateMedia({ "prefers-color-scheme": colorScheme });
        for (const [name, hash, last] of [["new", "#/", ".welcome h1"], ["models", "#/models", ".card.current"], ["device", "#/device", ".card"]]) {
          await app.go(hash);
          await page.waitForSelector(last);
          await settled(page);
          await app.shot(`view-no-webgpu-${name}-${size}-${colorScheme}`);
          equal(await faultsOf(page), [], `faults of ${name}, ${size}, ${colorScheme}`);
        }
      }
    }
    await page.setViewport(WIDE);
    await page.emulateMedia({ "prefers-color-scheme": "light" });
  });
}
