// A client of W3C WebDriver (https://www.w3.org/TR/webdriver2/): the few commands that the walk needs, and errors that keep the
// driver's own code. Only WebDriver reaches Safari on an iPhone, which no library for the developer tools' protocols does.

/** The name under which WebDriver hands out elements. */
const ELEMENT = "element-6066-11e4-a52e-4f735466cecf";

/** Milliseconds until a driver that says nothing is given up. A phone takes a minute to start its browser. */
const PATIENCE = 180_000;

/** @typedef {{ [ELEMENT]: string }} ElementReference an element of the page, as the driver names it */
/** @typedef {{ level: string, message: string, timestamp: number }} LogEntry */
/** @typedef {Record<string, unknown>} Capabilities */

/** What a driver said no to. `code` is one of the standard's, such as `session not created` or `no such element`. */
export class WebDriverError extends Error {
  /** @param {string} code @param {string} message @param {{ command?: string, status?: number, cause?: unknown }} [more] */
  constructor(code, message, { command, status, cause } = {}) {
    super(message, { cause });
    this.name = "WebDriverError";
    this.code = code;
    this.command = command;
    this.status = status;
  }
}

/** Not one of the standard's codes: nobody answers at the address, or somebody else does. */
export const UNREACHABLE = "driver unreachable";
export const NO_DRIVER = "no webdriver";

/** A WebDriver server: chromedriver, geckodriver, safaridriver. */
export class Driver {
  /** @param {string} address such as `http://127.0.0.1:4444` */
  constructor(address) {
    this.address = address.replace(/\/+$/, "");
  }

  /**
   * Sends one command and gives its value.
   * @param {"GET" | "POST" | "DELETE"} method @param {string} path @param {object} [body]
   * @returns {Promise<any>}
   */
  async command(method, path, body) {
    const command = `${method} ${path}`;
    let answer;
    let text;
    try {
      answer = await fetch(this.address + path, {
        method,
        headers: body ? { "content-type": "application/json; charset=utf-8" } : {},
        body: body && JSON.stringify(body),
        signal: AbortSignal.timeout(PATIENCE),
      });
      text = await answer.text();
    } catch (cause) {
      const reason = cause.cause?.message || cause.cause?.code || cause.message;
      throw new WebDriverError(UNREACHABLE, `no WebDriver server answers at ${this.address}: ${reason}`, { command, cause });
    }
    const value = valueOf(text);
    if (value === undefined) {
      const start = text.trim().slice(0, 80);
      throw new WebDriverError(NO_DRIVER, `${this.address} is no WebDriver server: it answered ${answer.status} “${start}”`, { command });
    }
    if (!answer.ok) {
      // What follows the first line are stacks of the driver's own, which help nobody here.
      const message = String(value?.message ?? "").split("\n")[0] || "without a reason";
      throw new WebDriverError(value?.error ?? "unknown error", message, { command, status: answer.status });
    }
    return value;
  }

  /** @returns {Promise<{ ready?: boolean, message?: string }>} */
  status() {
    return this.command("GET", "/status");
  }

  /**
   * Starts a browser.
   * @param {{ alwaysMatch?: Capabilities, firstMatch?: Capabilities[] }} capabilities what is wanted; of `firstMatch`, the first that the driver has
   */
  async start(capabilities) {
    const { sessionId, capabilities: given } = await this.command("POST", "/session", { capabilities });
    return new Session(this, sessionId, given);
  }

  /** A session that was started earlier. Whether it is still there, its first command tells. @param {string} id */
  attach(id, capabilities = {}) {
    return new Session(this, id, capabilities);
  }
}

/** A browser under a driver's control. */
export class Session {
  /** @param {Driver} driver @param {string} id @param {Capabilities} capabilities what the browser is and can do */
  constructor(driver, id, capabilities) {
    this.driver = driver;
    this.id = id;
    this.capabilities = capabilities;
  }

  #command(method, path, body) {
    return this.driver.command(method, `/session/${this.id}${path}`, body);
  }

  /** @param {{ script?: number, pageLoad?: number }} milliseconds */
  setTimeouts(milliseconds) {
    return this.#command("POST", "/timeouts", milliseconds);
  }

  /** @param {string} url */
  open(url) {
    return this.#command("POST", "/url", { url });
  }

  /** @returns {Promise<string>} */
  url() {
    return this.#command("GET", "/url");
  }

  refresh() {
    return this.#command("POST", "/refresh", {});
  }

  /**
   * Runs a function in the page and gives what it returns. It sees nothing of this file but its arguments.
   * @template T @param {(...values: any[]) => T} work @returns {Promise<T>}
   */
  run(work, ...values) {
    return this.#command("POST", "/execute/sync", { script: `return (${work}).apply(null, arguments);`, args: values });
  }

  /**
   * The same for a function that promises something. By callback, because not every driver waits for promises.
   * @template T @param {(...values: any[]) => Promise<T>} work @returns {Promise<T>}
   */
  async runAsync(work, ...values) {
    const script = `const values = [...arguments], done = values.pop();
      (${work})(...values).then((value) => done({ value }), (error) => done({ problem: String(error) }));`;
    const { value, problem } = await this.#command("POST", "/execute/async", { script, args: values });
    if (problem !== undefined) {
      throw new WebDriverError("javascript error", problem);
    }
    return value;
  }

  /** @param {string} selector @returns {Promise<ElementReference>} */
  find(selector) {
    return this.#command("POST", "/element", { using: "css selector", value: selector });
  }

  /** Presses an element as a finger would. @param {ElementReference} element */
  click(element) {
    return this.#command("POST", `/element/${element[ELEMENT]}/click`, {});
  }

  /** A picture of what is shown, as PNG. */
  async screenshot() {
    return Buffer.from(await this.#command("GET", "/screenshot"), "base64");
  }

  /** The browser's console since the last look; undefined from drivers without this, which is no part of the standard. @returns {Promise<LogEntry[] | undefined>} */
  async console() {
    try {
      return await this.#command("POST", "/se/log", { type: "browser" });
    } catch (error) {
      // Each driver says it in its own way, and no answer to this question is a reason to stop.
      if (error instanceof WebDriverError && error.code !== UNREACHABLE) {
        return undefined;
      }
      throw error;
    }
  }

  /** Ends the browser. */
  end() {
    return this.#command("DELETE", "");
  }
}

/** The value in a driver's answer; undefined if it is none of a driver. */
function valueOf(text) {
  try {
    const answer = JSON.parse(text);
    return typeof answer === "object" && answer !== null && "value" in answer ? answer.value : undefined;
  } catch {
    return undefined;
  }
}
