// The app in a tab, as the tests see it: opening it, and the steps that many checks begin with.

import { mkdir } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { assert } from "../../../../xtask/browser/assert.mjs";

export const ARTEFACTS = fileURLToPath(new URL("../artefacts/", import.meta.url));
export const MODEL = "micro-e2b-Q8_0";
export const MODEL_FILE = fileURLToPath(new URL(`../../../../testdata/gguf/${MODEL}.gguf`, import.meta.url));

/** Milliseconds to load a model and for a whole reply: on an emulated GPU, kernels are compiled for long. */
export const PATIENCE = 240_000;

export const WIDE = { width: 1200, height: 800 };
export const PHONE = { width: 390, height: 844 };
export const LANDSCAPE = { width: 844, height: 390 };

/** Small and the same every time. Only where nothing was chosen yet, so that a reload keeps what a check has set. */
export const SETTINGS = { context: 512, maxTokens: 16, seed: 7, temperature: 1, think: false };

/** In the page, before the app. */
function setOnce(settings) {
  try {
    if (localStorage.getItem("rullama.settings") === null) {
      localStorage.setItem("rullama.settings", settings);
    }
  } catch {
    // Before a page that is isolated, Firefox shows an empty one for a moment, which has no storage.
  }
}

/** In the page, before the app: models are loaded without the self-test, which takes longer than all else; one test has it. */
export function skipSelfTest() {
  const post = Worker.prototype.postMessage;
  Worker.prototype.postMessage = function (message, ...rest) {
    if (message?.kind === "call" && message.name === "load") {
      const options = JSON.parse(message.params.options);
      message.params.options = JSON.stringify({ ...options, self_test: false });
    }
    return post.call(this, message, ...rest);
  };
}

/** In the page: goes to another part of the app, and waits until the app has heard of it, which it does before this. */
function turnTo(hash) {
  if (location.hash === hash) {
    return;
  }
  return new Promise((resolve) => {
    addEventListener("hashchange", () => resolve(), { once: true });
    location.hash = hash;
  });
}

export class App {
  constructor(browser, context, page, origin) {
    this.browser = browser;
    this.patience = PATIENCE;
    this.context = context;
    this.page = page;
    this.origin = origin;
    /** Complaints on the console and requests to elsewhere; a check at the end wants none. */
    this.troubles = [];
    page.on("pageerror", (error) => this.troubles.push(`error in the page: ${error.message}`));
    page.on("console", (message) => {
      // An ordinary server has no such address, and the browser tells of it before the app can say that this is fine.
      const expected = message.location().url?.endsWith("/api/models");
      if (message.type() === "error" && !expected) {
        this.troubles.push(`on the console: ${message.text()}`);
      }
    });
    page.on("request", (request) => {
      if (/^https?:/.test(request.url()) && !request.url().startsWith(origin)) {
        this.troubles.push(`a request to ${request.url()}`);
      }
    });
  }

  static async open(browser, origin, { hash = "", before, settings = SETTINGS, selfTest = false, viewport = WIDE } = {}) {
    const context = await browser.newContext({ viewport, origin });
    const page = await context.newPage();
    if (!selfTest) {
      await page.addInitScript(skipSelfTest);
    }
    await page.addInitScript(setOnce, JSON.stringify(settings));
    if (before) {
      await page.addInitScript(before);
    }
    const app = new App(browser, context, page, origin);
    await app.go(hash);
    return app;
  }

  async go(hash) {
    const { page } = this;
    const url = `${this.origin}/${hash}`;
    if (url.startsWith(`${page.url().split("#")[0]}#`)) {
      await page.evaluate(turnTo, hash);
    } else {
      await page.goto(url);
      await page.waitForSelector("main > *");
    }
  }

  async reload() {
    await this.page.reload();
    await this.page.waitForSelector("main > *");
  }

  async setMaximum(tokens) {
    const { page } = this;
    await page.click('[aria-label="Settings"]');
    await page.fill('[data-setting="maxTokens"]', String(tokens));
    await page.press('[data-setting="maxTokens"]', "Tab");
    await this.leaveDialog();
  }

  /** Closes a dialog by its key. It is over when it has given focus back: keys before that go anywhere. */
  async leaveDialog() {
    await this.page.keyboard.press("Escape");
    await this.dialogClosed();
  }

  async dialogClosed() {
    await this.page.waitForSelector("dialog", { state: "detached" });
  }

  /** The service worker has the page, and with it all files of the app. */
  async controlled() {
    await this.page.evaluate(() => navigator.serviceWorker.ready);
    await this.page.waitForFunction(() => navigator.serviceWorker.controller !== null);
  }

  /** Opens the page anew without a network, and does something there. The page must have been opened through `line`. */
  async withoutNetwork(line, body) {
    await this.controlled();
    await line.cut();
    try {
      await this.reload();
      await body();
    } finally {
      await line.mend();
      // The app asks the server what it offers when it starts.
      await this.reload();
      // Browsers themselves tell on the console of requests that fail.
      this.troubles = this.troubles.filter((trouble) => !/ERR_CONNECTION_REFUSED/.test(trouble));
    }
  }

  async ready() {
    await this.page.waitForSelector('[data-state="ready"] .model-chip, [data-state="failed"] .model-chip', { timeout: this.patience });
    const failed = await this.page.$('[data-state="failed"] .model-chip');
    assert(!failed, `loading failed: ${failed && (await this.page.locator(".error-box").first().innerText())}`);
  }

  /** Asks, and waits until the answer is over. */
  async ask(text) {
    await this.send(text);
    await this.answered();
  }

  /** Asks, and waits until the answer has begun. */
  async begin(text) {
    await this.send(text);
    const begun = () => document.querySelector(".message:last-child .content").textContent.length > 5;
    await this.page.waitForFunction(begun, undefined, { timeout: this.patience });
  }

  /** Asks, and waits until the question and the place of its answer are there: the answer before it must not pass for this one. */
  async send(text) {
    const { page } = this;
    const { length } = await this.messages();
    await page.fill(".composer-input", text);
    await page.press(".composer-input", "Enter");
    // More, if what was queued meanwhile has been sent already.
    await page.waitForFunction((count) => document.querySelectorAll(".message").length >= count, length + 2);
  }

  async answered() {
    await this.page.waitForSelector('.message.assistant:last-child:not([data-state="writing"])', { timeout: this.patience });
  }

  /** The state and text of each message that is shown. */
  messages() {
    return this.page.$$eval(".message", (all) =>
      all.map((one) => ({
        role: one.classList.contains("user") ? "user" : "assistant",
        state: one.dataset.state,
        text: one.querySelector(".content").textContent,
        place: one.querySelector(".switch-place")?.textContent,
      })),
    );
  }

  async shot(name) {
    await mkdir(ARTEFACTS, { recursive: true });
    const prefix = this.browser.name === "firefox" ? "firefox-" : "";
    await this.page.screenshot({ path: `${ARTEFACTS}/${prefix}${name}.png` });
  }

  close() {
    return this.context.close();
  }
}
