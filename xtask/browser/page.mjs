// Browsers, contexts and pages as the tests see them: the same methods in Chromium and Firefox. Elements are named by selectors,
// and every method waits until its element is visible, so that tests need no pauses.
//
// A selector is a chain of parts with ` >> ` between them, each within the one before: CSS; `text=…`, the innermost elements with a
// text; `has=…`, those of the elements found so far that contain a text; `nth=…`, one of them by number.

import { existsSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

/** Milliseconds that a page may take for what it does by itself, on a machine that is busy with other work as well. */
export const SOON = 60_000;

/** Milliseconds between two looks at a page. */
const LOOK_EVERY = 30;

/** In the page: the elements that a selector names. */
const FIND = `(selector) => {
  let found = [document];
  const has = (wanted) => (element) => (element.textContent ?? "").replace(/\\s+/g, " ").toLowerCase().includes(wanted.toLowerCase());
  for (const part of selector.split(" >> ")) {
    if (part.startsWith("nth=")) {
      found = [found.at(Number(part.slice(4)))].filter(Boolean);
    } else if (part.startsWith("has=")) {
      found = found.filter(has(part.slice(4)));
    } else if (part.startsWith("text=")) {
      const contains = has(part.slice(5));
      found = found.flatMap((scope) => [scope, ...scope.querySelectorAll("*")])
        .filter((element) => element !== document && !element.closest("script, style, head") && contains(element) && ![...element.children].some(contains));
    } else {
      found = found.flatMap((scope) => [...scope.querySelectorAll(part)]);
    }
  }
  return [...new Set(found)];
}`;
/** In the page: whether a click in the middle of an element would reach it, and not a dialog over it or nothing. */
const HIT = `(element) => {
  element.scrollIntoView({ block: "nearest", inline: "nearest" });
  const { left, top, width, height } = element.getBoundingClientRect();
  const hit = document.elementFromPoint(left + width / 2, top + height / 2);
  return element.contains(hit);
}`;
const VISIBLE = "(element) => element.checkVisibility({ visibilityProperty: true }) && element.getBoundingClientRect().width > 0";

export class Browser {
  #remove;

  /** @param {import("puppeteer-core").Browser} raw puppeteer's own, for what only one browser has */
  constructor(name, program, raw, downloads, remove) {
    this.name = name;
    this.program = program;
    this.raw = raw;
    /** The folder that downloads are saved in. */
    this.downloads = downloads;
    this.#remove = remove;
  }

  /** Storage of its own, as a private window has. `viewport` may have `isMobile` and `hasTouch`, in Chromium. */
  async newContext({ viewport, origin } = {}) {
    const context = await this.raw.createBrowserContext();
    if (this.name === "chromium") {
      await context.setDownloadBehavior({ policy: "allow", downloadPath: this.downloads });
      if (origin) {
        await context.overridePermissions(origin, ["clipboard-read", "clipboard-sanitized-write"]);
      }
    }
    return new Context(this, context, viewport);
  }

  /** The storage of the browser's own profile. */
  get defaultContext() {
    return new Context(this, this.raw.defaultBrowserContext());
  }

  /** A session of the developer tools' protocol with the browser itself; Chromium only. */
  devtools() {
    return this.raw.target().createCDPSession();
  }

  async close() {
    await this.raw.close();
    this.#remove();
  }
}

class Context {
  #context;
  #viewport;

  constructor(browser, context, viewport) {
    this.browser = browser;
    this.#context = context;
    this.#viewport = viewport;
  }

  async newPage() {
    const raw = await this.#context.newPage();
    raw.setDefaultTimeout(SOON);
    if (this.#viewport) {
      await raw.setViewport(this.#viewport);
    }
    if (this.browser.name === "chromium") {
      // A page behind another one still paints and takes keys, as it does in a window of its own.
      await raw.emulateFocusedPage(true);
    }
    return new Page(this.browser, raw);
  }

  /** Closes all pages but the first, with which the browser would end; storage stays. */
  async closePages() {
    for (const page of (await this.#context.pages()).slice(1)) {
      await page.close();
    }
  }

  close() {
    return this.#context.close();
  }
}

class Page {
  /** @param {import("puppeteer-core").Page} raw */
  constructor(browser, raw) {
    this.browser = browser;
    this.raw = raw;
  }

  keyboard = {
    type: (text) => this.raw.keyboard.type(text),
    /** Presses a key, or several as in `Control+k`. */
    press: async (keys) => {
      const [last, ...held] = keys.split("+").reverse();
      for (const key of held) {
        await this.raw.keyboard.down(key);
      }
      await this.raw.keyboard.press(last);
      for (const key of held) {
        await this.raw.keyboard.up(key);
      }
    },
  };

  /** `console`, `pageerror` and `request`, as puppeteer has them. */
  on(event, listener) {
    this.raw.on(event, listener);
  }

  /** A script that runs in every document of the page before its own scripts. */
  addInitScript(script, argument) {
    return this.raw.evaluateOnNewDocument(script, argument);
  }

  goto(url) {
    return this.raw.goto(url);
  }

  /** Begins to open an address, without waiting for the page. */
  async leaveFor(url) {
    await this.raw.evaluate((address) => void setTimeout(() => location.assign(address)), url);
  }

  reload() {
    return this.raw.reload();
  }

  url() {
    return this.raw.url();
  }

  close() {
    return this.raw.close();
  }

  screenshot(options) {
    return this.raw.screenshot(options);
  }

  evaluate(body, argument) {
    return this.raw.evaluate(body, argument);
  }

  setViewport(viewport) {
    return this.raw.setViewport(viewport);
  }

  /** What CSS media queries report: `{ "prefers-color-scheme": "dark" }`. Chromium only. */
  emulateMedia(features) {
    return this.raw.emulateMediaFeatures(Object.entries(features).map(([name, value]) => ({ name, value })));
  }

  $$eval(selector, body) {
    return this.raw.$$eval(selector, body);
  }

  /** Polls from here, so that it outlives a reload of the page. */
  async waitForFunction(body, argument, { timeout = SOON } = {}) {
    await this.#until(() => this.raw.evaluate(body, argument), timeout, () => String(body));
  }

  async waitForSelector(selector, { timeout = SOON, state = "visible" } = {}) {
    if (state === "detached") {
      await this.#until(() => this.#ask(selector, "(found) => found.length === 0"), timeout, () => `no ${selector}`);
    } else {
      await (await this.#element(selector, { timeout })).dispose();
    }
  }

  async $(selector) {
    return (await this.#ask(selector, "(found) => found.length")) > 0 ? this.locator(selector) : null;
  }

  click(selector) {
    return this.#act(selector, (element) => element.click(), { is: HIT });
  }

  hover(selector) {
    return this.#act(selector, (element) => element.hover());
  }

  focus(selector) {
    return this.#act(selector, (element) => element.focus());
  }

  /** As if it were pasted: the page hears of a change when the field is left only if the text came through the editor. */
  async fill(selector, text) {
    const paste = (field, value) => {
      field.focus();
      field.select();
      document.execCommand(value === "" ? "delete" : "insertText", false, value);
    };
    await this.#act(selector, (element) => element.evaluate(paste, text));
  }

  /** Chooses an option of a list by its value. */
  select(selector, value) {
    return this.#act(selector, (element) => element.select(value));
  }

  async press(selector, keys) {
    await this.focus(selector);
    await this.keyboard.press(keys);
  }

  /** Clicks something that asks for a file, and gives it one: a path, or a name and its content. */
  async chooseFile(selector, file) {
    const folder = mkdtempSync(join(this.browser.downloads, "..", "chosen-"));
    const path = typeof file === "string" ? file : join(folder, basename(file.name));
    if (typeof file !== "string") {
      writeFileSync(path, file.content);
    }
    if (this.browser.name === "chromium") {
      const [chooser] = await Promise.all([this.raw.waitForFileChooser(), this.click(selector)]);
      return chooser.accept([path]);
    }
    // Without a window, Firefox cancels the dialog at once. So it does not open: the page's click on its field is only noted.
    await this.raw.evaluate(() => {
      const { click } = HTMLInputElement.prototype;
      HTMLInputElement.prototype.click = function () {
        if (this.type !== "file") {
          return click.call(this);
        }
        HTMLInputElement.prototype.click = click;
        globalThis.chosenField = this;
      };
    });
    await this.click(selector);
    const field = await this.raw.waitForFunction(() => globalThis.chosenField);
    await this.raw.evaluate(() => delete globalThis.chosenField);
    await field.uploadFile(path);
  }

  /** Clicks something that saves a file; gives the file's bytes. */
  async download(selector) {
    const { downloads } = this.browser;
    readdirSync(downloads).forEach((name) => rmSync(join(downloads, name)));
    await this.click(selector);
    let path;
    const isThere = () => {
      const names = readdirSync(downloads);
      // Chromium writes to NAME.crdownload first; Firefox to NAME.part, beside an empty NAME.
      const unfinished = names.some((name) => /\.(crdownload|part)$/.test(name));
      path = unfinished || names.length !== 1 ? undefined : join(downloads, names[0]);
      return path && existsSync(path) && statSync(path).size > 0;
    };
    await this.#until(isThere, SOON, () => `a download after ${selector}`);
    return readFile(path);
  }

  inputValue(selector) {
    return this.#ask(selector, "([first]) => first.value");
  }

  locator(selector) {
    const first = (body) => this.#ask(selector, body);
    return {
      first: () => this.locator(`${selector} >> nth=0`),
      count: () => first("(found) => found.length"),
      innerText: async () => {
        await this.waitForSelector(selector);
        return first("([element]) => element.innerText");
      },
      allInnerTexts: () => first("(found) => found.map((element) => element.innerText)"),
      scrollIntoView: async () => {
        await this.waitForSelector(selector);
        await first("([element]) => element.scrollIntoView({ block: 'nearest' })");
      },
      textContent: () => first("([element]) => element.textContent"),
      getAttribute: (name) => first(`([element]) => element.getAttribute(${JSON.stringify(name)})`),
      isVisible: () => first(`(found) => found.some(${VISIBLE})`),
    };
  }

  #ask(selector, body) {
    return this.raw.evaluate(`(${body})((${FIND})(${JSON.stringify(selector)}))`);
  }

  /** The first visible element of a selector, once there is one that also satisfies `is`. */
  async #element(selector, { timeout = SOON, is = "() => true" } = {}) {
    let element;
    const look = async () => {
      const handle = await this.raw.evaluateHandle(
        `[(${FIND})(${JSON.stringify(selector)}).find(${VISIBLE})].find((one) => one && (${is})(one)) ?? null`,
      );
      element = handle.asElement();
      return element;
    };
    await this.#until(look, timeout, () => selector);
    return element;
  }

  /** Does something with an element; with the next one if the page has replaced it in between. */
  async #act(selector, action, options) {
    for (;;) {
      const element = await this.#element(selector, options);
      try {
        return await action(element);
      } catch (error) {
        if (!/detached|not clickable/.test(error.message)) {
          throw error;
        }
      } finally {
        await element.dispose().catch(() => {});
      }
    }
  }

  async #until(holds, timeout, what) {
    const end = Date.now() + timeout;
    let failure;
    for (;;) {
      try {
        if (await holds()) {
          return;
        }
      } catch (error) {
        // The page may be navigating.
        failure = error;
      }
      if (Date.now() > end) {
        throw new Error(`not within ${timeout} ms: ${what()}`, { cause: failure });
      }
      await sleep(LOOK_EVERY);
    }
  }
}
