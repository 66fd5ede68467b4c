// Firefox, driven by puppeteer, with as much of Playwright's interface as the checks use: Playwright drives only a Firefox that
// it has patched, and the checks are to be the same in the one that people have.
//
// Selectors are Playwright's as far as the checks need them: CSS, `text=…` for the innermost elements with a text, `nth=…`, and
// ` >> ` between them for one within the other.

import { setTimeout as sleep } from "node:timers/promises";

/** In the page: the elements that a selector names. */
const FIND = `(selector) => {
  let found = [document];
  for (const part of selector.split(" >> ")) {
    if (part.startsWith("nth=")) {
      found = [found.at(Number(part.slice(4)))].filter(Boolean);
    } else if (part.startsWith("text=")) {
      const wanted = part.slice(5).toLowerCase();
      const has = (element) => (element.textContent ?? "").replace(/\\s+/g, " ").toLowerCase().includes(wanted);
      found = found.flatMap((scope) => [scope, ...scope.querySelectorAll("*")])
        .filter((element) => element !== document && !element.closest("script, style, head") && has(element) && ![...element.children].some(has));
    } else {
      found = found.flatMap((scope) => [...scope.querySelectorAll(part)]);
    }
  }
  return [...new Set(found)];
}`;
/** In the page: whether a press in the middle of an element would be one of it, and not of a dialog over it or of nothing. */
const HIT = `(element) => {
  element.scrollIntoView({ block: "nearest", inline: "nearest" });
  const { left, top, width, height } = element.getBoundingClientRect();
  const hit = document.elementFromPoint(left + width / 2, top + height / 2);
  return element.contains(hit);
}`;
const VISIBLE = "(element) => element.checkVisibility({ visibilityProperty: true }) && element.getBoundingClientRect().width > 0";

export class FirefoxBrowser {
  pictures = "firefox-";
  #browser;

  constructor(browser) {
    this.#browser = browser;
  }

  /** A profile of its own, as far as storage goes. */
  async newContext({ viewport } = {}) {
    return new FirefoxContext(await this.#browser.createBrowserContext(), viewport);
  }

  close() {
    return this.#browser.close();
  }
}

class FirefoxContext {
  #context;
  #viewport;
  #timeout = 30_000;

  constructor(context, viewport) {
    this.#context = context;
    this.#viewport = viewport;
  }

  setDefaultTimeout(milliseconds) {
    this.#timeout = milliseconds;
  }

  /** What is granted by name in Chromium is asked for in Firefox only when it is used. */
  async grantPermissions() {}

  async newPage() {
    const page = await this.#context.newPage();
    page.setDefaultTimeout(this.#timeout);
    if (this.#viewport) {
      await page.setViewport(this.#viewport);
    }
    return new FirefoxPage(page, this.#timeout);
  }

  close() {
    return this.#context.close();
  }
}

class FirefoxPage {
  #page;
  #timeout;

  constructor(page, timeout) {
    this.#page = page;
    this.#timeout = timeout;
  }

  get keyboard() {
    const { keyboard } = this.#page;
    return {
      type: (text) => keyboard.type(text),
      press: async (keys) => {
        const [last, ...held] = keys.split("+").reverse();
        for (const key of held) {
          await keyboard.down(key);
        }
        await keyboard.press(last);
        for (const key of held) {
          await keyboard.up(key);
        }
      },
    };
  }

  on(event, listener) {
    this.#page.on(event, listener);
  }

  addInitScript(script, argument) {
    return this.#page.evaluateOnNewDocument(script, argument);
  }

  goto(url) {
    return this.#page.goto(url);
  }

  reload() {
    return this.#page.reload();
  }

  url() {
    return this.#page.url();
  }

  close() {
    return this.#page.close();
  }

  screenshot(options) {
    return this.#page.screenshot(options);
  }

  evaluate(body, argument) {
    return this.#page.evaluate(body, argument);
  }

  $$eval(selector, body) {
    return this.#page.$$eval(selector, body);
  }

  /** Polls from here: it outlives a page that is loaded anew meanwhile. */
  async waitForFunction(body, argument, { timeout = this.#timeout } = {}) {
    await this.#until(() => this.#page.evaluate(body, argument), timeout, () => String(body));
  }

  async waitForSelector(selector, { timeout = this.#timeout, state = "visible" } = {}) {
    if (state === "detached") {
      await this.#until(() => this.#ask(selector, "(found) => found.length === 0"), timeout, () => `no ${selector}`);
    } else {
      await this.#element(selector, { timeout });
    }
  }

  async $(selector) {
    return (await this.#ask(selector, "(found) => found.length")) > 0 ? this.locator(selector) : null;
  }

  async click(selector) {
    const element = await this.#element(selector, { is: HIT });
    await element.click();
    await element.dispose();
  }

  async hover(selector) {
    const element = await this.#element(selector);
    await element.hover();
    await element.dispose();
  }

  async focus(selector) {
    const element = await this.#element(selector);
    await element.focus();
    await element.dispose();
  }

  /** As if it were pasted: only what comes through the editor is told to the page as a change when the field is left. */
  async fill(selector, text) {
    const element = await this.#element(selector);
    await element.evaluate((field, value) => {
      field.focus();
      field.select();
      document.execCommand(value === "" ? "delete" : "insertText", false, value);
    }, text);
    await element.dispose();
  }

  async press(selector, keys) {
    await this.focus(selector);
    await this.keyboard.press(keys);
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
        await this.#element(selector);
        return first("([element]) => element.innerText");
      },
      allInnerTexts: () => first("(found) => found.map((element) => element.innerText)"),
      scrollIntoViewIfNeeded: async () => {
        await this.#element(selector);
        await first("([element]) => element.scrollIntoView({ block: 'nearest' })");
      },
      textContent: () => first("([element]) => element.textContent"),
      getAttribute: (name) => first(`([element]) => element.getAttribute(${JSON.stringify(name)})`),
      isVisible: () => first(`(found) => found.some(${VISIBLE})`),
    };
  }

  #ask(selector, body) {
    return this.#page.evaluate(`(${body})((${FIND})(${JSON.stringify(selector)}))`);
  }

  /** The first element of a selector that can be seen, when there is one, and is what else it has to be. */
  async #element(selector, { timeout = this.#timeout, is = "() => true" } = {}) {
    let element;
    const look = async () => {
      const handle = await this.#page.evaluateHandle(`[(${FIND})(${JSON.stringify(selector)}).find(${VISIBLE})].find((one) => one && (${is})(one)) ?? null`);
      element = handle.asElement();
      return element;
    };
    await this.#until(look, timeout, () => selector);
    return element;
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
        // The page may be on its way to another.
        failure = error;
      }
      if (Date.now() > end) {
        throw new Error(`not within ${timeout} ms: ${what()}`, { cause: failure });
      }
      await sleep(50);
    }
  }
}
