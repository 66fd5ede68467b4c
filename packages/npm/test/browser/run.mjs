// Tests of the package in a real browser: `node test/browser/run.mjs chromium|firefox [NAME]`.
//
// A case runs in the page, with the package as `rullama` and what `prepare` made as its argument; it throws what is wrong.
// Each gets a page of its own. Cases that would take long in some browsers name those where they run unless asked for by
// NAME.

import { NAMES, start } from "../../../../xtask/browser/browsers.mjs";
import { serve } from "./server.mjs";
import { cases } from "./cases.mjs";

const SECONDS = 1800;

const [name, wanted] = process.argv.slice(2);
if (!NAMES.includes(name)) {
  console.error("usage: node test/browser/run.mjs chromium|firefox [NAME]");
  process.exit(2);
}
setTimeout(() => {
  console.error(`not done after ${SECONDS} seconds`);
  process.exit(1);
}, SECONDS * 1000).unref();

const server = await serve();
const { browser, program } = await start(name);
console.log(`${name}: ${program}`);
let passed = 0;
let failed = 0;
const isMeant = ({ title, browsers }) => (wanted ? title.includes(wanted) : browsers?.includes(name) ?? true);
for (const one of cases.filter(isMeant)) {
  const started = Date.now();
  const problem = await attempt(one);
  const seconds = ((Date.now() - started) / 1000).toFixed(1);
  if (problem === undefined) {
    passed += 1;
    console.log(`ok      ${one.title} (${seconds} s)`);
  } else {
    failed += 1;
    console.log(`FAILED  ${one.title} (${seconds} s)\n        ${problem.replaceAll("\n", "\n        ")}`);
  }
}
await browser.close();
server.close();
console.log(`test result: ${failed === 0 && passed > 0 ? "ok" : "FAILED"}. ${passed} passed; ${failed} failed`);
process.exit(failed === 0 && passed > 0 ? 0 : 1);

/** Runs one case; says what is wrong, if anything is. */
async function attempt({ page: path = "/", body, prepare, check, expected, folders }) {
  const page = await browser.newPage();
  const errors = [];
  page.on("pageerror", (error) => errors.push(`in the page: ${error.message}`));
  page.on("console", (message) => {
    // Browsers write of every request that fails.
    if (message.type() === "error" && !expected?.test(message.text())) {
      errors.push(`on the console: ${message.text()}`);
    }
  });
  try {
    Object.assign(server.folders, await folders?.());
    await page.goto(server.origin + path);
    server.requests.length = 0;
    const given = { browser: name, origin: server.origin, ...(await prepare?.()) };
    const outcome = await page.evaluate(run, [body === null ? null : text(body), given]);
    if (outcome.problem) {
      return [outcome.problem, ...errors].join("\n");
    }
    await check?.(outcome.value, { requests: server.requests, browser: name });
    return errors.length > 0 ? errors.join("\n") : undefined;
  } catch (error) {
    return [error.stack ?? String(error), ...errors].join("\n");
  } finally {
    await page.close();
  }
}

/** A function as text that can be evaluated, also if it is written as a method. */
function text(body) {
  const source = body.toString();
  return /^async (function|\()/.test(source) ? source : source.replace(/^async \w+/, "async function");
}

/** In the page: imports the package and runs the case. */
async function run([body, given]) {
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
  try {
    const rullama = await import("/dist/index.js");
    // Where code from text is forbidden, the page has brought its own.
    const work = body === null ? globalThis.testBody : (0, eval)(`(${body})`);
    return { value: await work(rullama, given, assert) };
  } catch (error) {
    return { problem: `${error.name} ${error.code ?? ""}: ${error.message}\n${error.stack}` };
  }
}
