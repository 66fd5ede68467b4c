// Tests whose body runs in a page that has the package: `pageTest` makes a test for the runner out of one.
//
// The body gets the package, what `prepare` made (with the browser's name and the server's origin) and `assert`; it throws what is
// wrong. It is sent to the page as text, so it uses nothing of its file but its arguments. Complaints on the console and errors of
// the page fail the test as well.

import { existsSync } from "node:fs";
import { serve } from "./server.mjs";

/**
 * @param {object} test as the runner wants it (title, browsers, gpu, quick), and besides:
 *   `body`, or none where the page brings `globalThis.testBody`; `path` of the page; `prepare()` on this side; `loads`, how often the page
 *   is loaded and the body runs; `check(value, requests)` of what the body gave, or with `loads` of the list of what it gave each time, and
 *   of what the server was asked; `expected`, the complaints on the console that are no failure; `folders()`,
 *   more folders for the server, by name
 */
export function pageTest({ body, path = "/", prepare, loads, check, expected, folders, ...test }) {
  const run = async ({ browser, shared: { server } }) => {
    const context = await browser.newContext();
    const page = await context.newPage();
    const errors = [];
    page.on("pageerror", (error) => errors.push(`in the page: ${error.message}`));
    page.on("console", (message) => {
      if (message.type() === "error" && !expected?.test(message.text())) {
        errors.push(`on the console: ${message.text()}`);
      }
    });
    try {
      Object.assign(server.folders, await folders?.());
      await page.goto(server.origin + path);
      server.requests.length = 0;
      const given = { browser: browser.name, origin: server.origin, ...(await prepare?.(browser.name)) };
      const values = [];
      for (let load = 0; load < (loads ?? 1); load++) {
        if (load > 0) {
          await page.reload();
        }
        const { value, problem } = await page.evaluate(runBody, [body ? text(body) : null, given]);
        if (problem || errors.length > 0) {
          throw new Error([problem, ...errors].filter(Boolean).join("\n"));
        }
        values.push(value);
      }
      await check?.(loads ? values : values[0], server.requests);
    } finally {
      await context.close();
    }
  };
  return { ...test, run };
}

/** The server that all tests of a file share. */
export async function setUp() {
  if (!existsSync(new URL("../../dist/index.js", import.meta.url))) {
    throw new Error("the package is not built: cargo xtask web");
  }
  const server = await serve();
  return { server, close: () => server.close() };
}

/** A function as text that can be evaluated, also if it is written as a method. */
function text(body) {
  const source = body.toString();
  return /^async (function|\()/.test(source) ? source : source.replace(/^async \w+/, "async function");
}

/** In the page: imports the package and runs the body. */
async function runBody([body, given]) {
  const assert = (condition, message) => {
    if (!condition) {
      throw new Error(message);
    }
  };
  assert.equal = (found, expected, what = "") => {
    const [a, b] = [JSON.stringify(found), JSON.stringify(expected)];
    assert(a === b, `${what} ${a} was found; ${b} was expected`);
  };
  /** What `work` throws must be an error of the package with this code. */
  assert.fails = async (work, code) => {
    try {
      await work();
    } catch (error) {
      const { RullamaError } = await import("/dist/index.js");
      assert(error instanceof RullamaError, `not an error of the package: ${error}`);
      assert(error.code === code, `the code is ${error.code} (${error.message}); ${code} was expected`);
      return error;
    }
    throw new Error(`nothing was thrown; ${code} was expected`);
  };
  /**
   * Loads until the first weights are on the GPU, and cancels: everything before is done, the bytes come by ranges, and no kernels are
   * compiled, which takes long on an emulated GPU.
   */
  assert.reachesUpload = async (Engine, source, options = {}) => {
    const controller = new AbortController();
    let uploaded = false;
    const onProgress = ({ status, loaded }) => {
      if (status === "upload" && loaded > 0) {
        uploaded = true;
        controller.abort();
      }
    };
    const loading = Engine.load(source, { backend: "gpu", selfTest: false, context: 64, signal: controller.signal, onProgress, ...options });
    // Not by `fails`: a page that was built has its own copy of the package, and of its errors.
    const code = await loading.then(() => "it was loaded", (error) => error.code ?? String(error));
    assert.equal(code, "cancelled", "loading ended with");
    assert(uploaded, "nothing was uploaded");
  };
  try {
    const rullama = await import("/dist/index.js");
    // Where a policy forbids code from text, the page has brought its own.
    const work = body === null ? globalThis.testBody : (0, eval)(`(${body})`);
    return { value: await work(rullama, given, assert) };
  } catch (error) {
    return { problem: `${error.name} ${error.code ?? ""}: ${error.message}\n${error.stack}` };
  }
}
