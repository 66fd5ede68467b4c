// The app in a tab, as the tests see it: opening it, and the steps that many checks begin with.

import { mkdir } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { assert } from "./checks.mjs";

export const ARTEFACTS = fileURLToPath(new URL("../artefacts/", import.meta.url));
export const MODEL = "micro-e2b-Q8_0";
export const MODEL_FILE = fileURLToPath(new URL(`../../../../testdata/gguf/${MODEL}.gguf`, import.meta.url));

/** Kernels are made by the processor here, which takes a while. */
export const PATIENCE = 480_000;

/** Small and the same every time. Only where nothing was chosen yet, so that a reload keeps what a check has set. */
const SETTINGS = { context: 512, maxTokens: 16, seed: 7, temperature: 1, think: false };

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

export class App {
  constructor(context, page, origin, { patience, pictures }) {
    this.patience = patience;
    /** What the names of its pictures begin with. */
    this.pictures = pictures;
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

  static async open(browser, origin, { hash = "", before, settings = SETTINGS, patience = PATIENCE, ...options } = {}) {
    const context = await browser.newContext({ viewport: { width: 1200, height: 800 }, acceptDownloads: true, ...options });
    context.setDefaultTimeout(20_000);
    await context.grantPermissions(["clipboard-read", "clipboard-write"]);
    const page = await context.newPage();
    await page.addInitScript(setOnce, JSON.stringify(settings));
    if (before) {
      await page.addInitScript(before);
    }
    const app = new App(context, page, origin, { patience, pictures: browser.pictures ?? "" });
    await app.go(hash);
    return app;
  }

  async go(hash) {
    await this.page.goto(`${this.origin}/${hash}`);
    await this.page.waitForSelector("main > *");
  }

  async setMaximum(tokens) {
    const { page } = this;
    await page.click('[aria-label="Settings"]');
    await page.fill('[data-setting="maxTokens"]', String(tokens));
    await page.press('[data-setting="maxTokens"]', "Tab");
    await page.keyboard.press("Escape");
  }

  async ready() {
    await this.page.waitForSelector('[data-state="ready"] .model-chip, [data-state="failed"] .model-chip', { timeout: this.patience });
    const failed = await this.page.$('[data-state="failed"] .model-chip');
    assert(!failed, `loading failed: ${failed && (await this.page.locator(".error-box").first().innerText())}`);
  }

  /** Asks, and waits until the answer is over. */
  async ask(text) {
    const { page } = this;
    await page.fill(".composer-input", text);
    await page.press(".composer-input", "Enter");
    await page.waitForSelector(".message.assistant:last-child");
    await this.answered();
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
    await this.page.screenshot({ path: `${ARTEFACTS}/${this.pictures}${name}.png` });
  }

  close() {
    return this.context.close();
  }
}
