// The walk: `cargo xtask phone`. Opens the app in a browser that a WebDriver server controls, a phone's above all, loads a model,
// says something, and prints what came of it. Everything is done as a person would do it, in the page.

import { writeFileSync } from "node:fs";
import { resolve } from "node:path";

import { forget, keep, keptFile, readKept } from "./kept.mjs";
import { HELP, readOptions, UsageError } from "./options.mjs";
import * as page from "./page.mjs";
import { bytes, problemText, Progress, say, secondsSince } from "./report.mjs";
import { latest, readLog } from "./server-log.mjs";
import { Driver, NO_DRIVER, UNREACHABLE, WebDriverError } from "./webdriver.mjs";

/** Milliseconds between two looks at the page: a phone that computes has better things to do than to answer. */
const LOOK_EVERY = 500;

/** Milliseconds that the app may take to read its lists, or to begin what it was told. */
const PROMPTLY = 10_000;

/** Whichever of these the driver has. Only Chrome tells its console. */
const BROWSERS = [
  { browserName: "safari", platformName: "iOS" },
  { browserName: "chrome", "goog:loggingPrefs": { browser: "ALL" } },
  { browserName: "firefox" },
];

/** The walk cannot go on. `hint` is what may help. */
class WalkError extends Error {
  constructor(message, hint) {
    super(message);
    this.hint = hint;
  }
}

process.exitCode = await main();

async function main() {
  let options;
  try {
    options = readOptions(process.argv.slice(2));
  } catch (error) {
    if (!(error instanceof UsageError)) {
      throw error;
    }
    console.error(`error: ${error.message}\n\n${HELP}`);
    return 2;
  }
  if (!options) {
    console.log(HELP);
    return 0;
  }
  let session;
  let seen = 0;
  let failed = false;
  try {
    session = await openSession(options);
    for (const signal of ["SIGINT", "SIGTERM"]) {
      process.once(signal, () => void close(session, options).finally(() => process.exit(130)));
    }
    seen = await latest(options.page);
    await walk(session, options);
  } catch (error) {
    failed = true;
    complain(error, options);
  }
  if (session) {
    await tell(session, options, seen);
    await close(session, options);
  }
  return failed ? 1 : 0;
}

/** Goes on with the kept session, if it is still there; else starts one. */
async function openSession({ driver: address, capabilities, timeout }) {
  const driver = new Driver(address);
  const kept = readKept(address);
  if (kept) {
    const session = driver.attach(kept.id, kept.capabilities);
    try {
      await session.url();
      say("session", `kept one goes on: ${browserOf(session)}`);
      return session;
    } catch (error) {
      if (!(error instanceof WebDriverError) || [UNREACHABLE, NO_DRIVER].includes(error.code)) {
        throw error;
      }
      say("session", `the kept one is gone (${error.code})`);
      forget(address);
      // One that is half gone would stand in the way of the next: an iPhone has only one.
      await session.end().catch(() => {});
    }
  }
  const status = await driver.status();
  if (status.ready === false) {
    say("session", `the driver says that it is not ready: ${status.message ?? ""}`);
  }
  const wanted = capabilities?.browserName === "chrome" ? { "goog:loggingPrefs": { browser: "ALL" }, ...capabilities } : capabilities;
  const session = await driver.start(wanted ? { alwaysMatch: wanted } : { firstMatch: BROWSERS });
  await session.setTimeouts({ pageLoad: Math.round(timeout), script: 120_000 });
  say("session", `new: ${browserOf(session)}`);
  return session;
}

function browserOf({ id, capabilities: { browserName, browserVersion, platformName } }) {
  return `${[browserName, browserVersion].filter(Boolean).join(" ")}${platformName ? ` on ${platformName}` : ""} (${id})`;
}

async function walk(session, options) {
  await openPage(session, options);
  if (options.clean) {
    await cleanPage(session, options);
  }
  if (!options.chat) {
    return;
  }
  await load(session, options, await chooseModel(session, options));
  await chat(session, options);
}

async function openPage(session, options) {
  const start = performance.now();
  await session.open(options.page);
  // Where only what follows the # differs, the page stays as it is.
  if (await session.run(page.mark)) {
    await reload(session);
  }
  await started(session, options);
  // Before settings: the newer version may read them otherwise.
  if (await session.runAsync(page.takeNewVersion)) {
    say("page", "the server has a newer version than the browser had kept; it takes over");
    await reload(session);
    await started(session, options);
  }
  await set(session, options);
  const { title } = await session.run(page.look);
  say("page", `${await session.url()} “${title}” in ${secondsSince(start)}`);
}

async function set(session, options) {
  // A phone has no console to look at, so the app reports its errors to the server, where the walk finds them. The app would ask the
  // user of a link; whoever starts this walk has asked for it, and `--set report=false` leaves it off.
  if (await session.run(page.changeSettings, { report: true, ...options.settings })) {
    await reload(session);
    await started(session, options);
  }
}

async function reload(session) {
  await session.refresh();
  await session.run(page.mark);
}

/** Waits until the app shows itself. */
async function started(session, { page: address, timeout }) {
  const state = await until(session, timeout, (state) => state.started || !state.app, () => "the app did not start");
  if (!state.app) {
    const hint = "is `rullama serve` running there, and does the phone trust its certificate? See docs/guide/phone.md";
    throw new WalkError(`${address} is not the app: it shows “${state.title}”`, hint);
  }
}

async function cleanPage(session, options) {
  const { files, problems, ...removed } = await session.runAsync(page.clean);
  // Not in the app any more, which would begin to store things again.
  await session.open("about:blank");
  const counted = [
    `${files} stored files with ${bytes(removed.bytes)}`,
    `${removed.databases} databases`,
    `${removed.workers} service workers`,
    `${removed.caches} caches`,
    `${removed.settings} settings`,
  ];
  say("clean", `removed ${counted.join(", ")}`);
  if (problems.length > 0) {
    throw new WalkError(`some of what the page stored could not be removed: ${problems.join("; ")}`, "close other tabs with the app");
  }
  if (options.chat) {
    await openPage(session, options);
  }
}

/** Finds the model that is wanted. What to press, and how to call it. */
async function chooseModel(session, { model: wanted }) {
  const gpu = await session.runAsync(page.adapter);
  // A page needs https for WebGPU, or to come from the same machine; iOS needs version 26.
  say("gpu", gpu === "" ? "none; the CPU computes" : gpu);
  await session.run(page.showModels);
  if (wanted !== undefined && /^https?:\/\//.test(wanted)) {
    await findModels(session, () => true);
    await session.run(page.write, 'form input[type="url"]', wanted);
    say("model", `${wanted}, by its address`);
    return page.LOAD_ADDRESS;
  }
  const name = wanted?.replace(/\.gguf$/i, "");
  // With a stored model, the server's list need not be waited for.
  const found = await findModels(session, (lists) => (name === undefined ? lists.stored.length > 0 : namedModel(lists, name) !== undefined));
  const chosen = name === undefined ? defaultModel(found) : namedModel(found, name);
  if (!chosen) {
    const list = (models) => models.map(({ name: one }) => one).join(", ") || "none";
    const there = `in the browser: ${list(found.stored)}; of the server: ${list(found.server)}; of the app: ${list(found.demo)}`;
    throw new WalkError(name === undefined ? `no model was named (${there})` : `there is no model \`${name}\` (${there})`, "--model takes one of these names, or the address of a GGUF file");
  }
  say("model", `${chosen.name}, ${chosen.where}${chosen.action === "Resume" ? ", not complete yet" : ""}`);
  return page.modelButton(chosen.name, chosen.action);
}

function namedModel({ stored, server, demo }, name) {
  const named = ({ name: one }) => one === name;
  return kind(stored.find(named), "stored in the browser") ?? kind(server.find(named), "of the server") ?? kind(demo.find(named), "of the app");
}

/** The model to take where none is named; undefined if somebody has to choose. */
function defaultModel({ stored, server, demo }) {
  if (stored.length > 0) {
    return kind(stored[0], "stored in the browser");
  }
  if (server.length > 0) {
    return server.length === 1 ? kind(server[0], "of the server") : undefined;
  }
  return kind(demo[0], "of the app");
}

function kind(model, where) {
  return model && { ...model, where };
}

/** The lists of models, once there is something in them that will do, or nothing has come for a while. */
async function findModels(session, enough) {
  const start = performance.now();
  for (;;) {
    const found = await session.run(page.listModels);
    const waited = performance.now() - start;
    // The list of stored models comes a moment after its page, and nothing tells an empty one from one that is late.
    if (found && (enough(found) || waited > 3000)) {
      return found;
    }
    if (waited > PROMPTLY) {
      throw new WalkError("the page of models does not show");
    }
    await sleep(LOOK_EVERY / 2);
  }
}

async function load(session, { timeout }, button) {
  const start = performance.now();
  const tell = new Progress("load");
  let begun = false;
  await press(session, button);
  const done = (state) => {
    if (state.checking) {
      return false;
    }
    // The page refuses a model before it begins to load it.
    if (state.problem && state.model !== "busy") {
      return true;
    }
    begun ||= state.model === "busy";
    const stage = state.stages.findLast((one) => !one.done) ?? state.stages.at(-1);
    tell.about(stage?.name, stage && [stage.name, stage.percent, stage.facts].filter(Boolean).join(" · "));
    if (state.model === "empty" && (begun || performance.now() - start > PROMPTLY)) {
      throw new WalkError(begun ? "loading was stopped" : "the page did not begin to load the model");
    }
    return state.model === "ready" || state.model === "failed";
  };
  const state = await until(session, timeout, done, () => `the model was not ready${tell.last ? ` (${tell.last})` : ""}`);
  if (state.model === "failed" || state.problem) {
    throw new WalkError(`the model could not be loaded: ${state.problem ? problemText(state.problem) : state.label}`);
  }
  say("load", `${state.label} is ready in ${secondsSince(start)}`);
}

async function chat(session, { say: text, timeout }) {
  await session.run(page.showChat);
  const { replies } = await until(session, PROMPTLY, (state) => state.chat, () => "the chat does not show");
  await session.run(page.write, ".composer-input", text);
  say("say", text);
  const start = performance.now();
  const tell = new Progress("reply");
  await press(session, page.SEND);
  const done = ({ replies: now, reply }) => {
    if (now <= replies) {
      return false;
    }
    tell.about("writing", reply.state === "writing" ? `${reply.thought.length + reply.text.length} characters so far` : undefined);
    return reply.state !== "writing";
  };
  const { reply } = await until(session, timeout, done, () => `the reply was not complete${tell.last ? ` (${tell.last})` : ""}`);
  if (reply.thought !== "") {
    say("thought", reply.thought);
  }
  say("reply", reply.text || "(nothing)");
  if (reply.state !== "complete") {
    throw new WalkError(`the reply ${reply.state}${reply.problem ? `: ${problemText(reply.problem)}` : ""}`);
  }
  say("speed", `${reply.facts || "not told"}; ${secondsSince(start)} in all`);
}

/** Looks at the page until `done`, and gives what was seen last. */
async function until(session, timeout, done, problem) {
  const start = performance.now();
  for (;;) {
    const state = await session.run(page.look);
    if (!state.marked) {
      throw new WalkError("the browser ended the page and loaded it anew", "on a phone this is mostly for want of memory: a smaller model, or `--set context=1024`");
    }
    if (done(state)) {
      return state;
    }
    if (performance.now() - start > timeout) {
      throw new WalkError(`${problem()} after ${Math.round(timeout / 1000)} seconds`, "`--timeout SECONDS` waits longer");
    }
    await sleep(LOOK_EVERY);
  }
}

async function press(session, selector) {
  const element = await session.find(selector);
  try {
    await session.click(element);
  } catch (error) {
    // A message at the edge of a small screen may lie over it.
    if (!["element click intercepted", "element not interactable"].includes(error.code)) {
      throw error;
    }
    await session.run(page.press, selector);
  }
}

/** Prints what the page and the server noted, and takes the picture; also after a failure, when it is needed most. */
async function tell(session, options, seen) {
  const attempt = async (stage, work) => {
    try {
      await work();
    } catch (error) {
      say(stage, `not to be had: ${error.message}`);
    }
  };
  await attempt("console", async () => {
    const entries = (await session.console()) ?? (await session.run(page.takeConsole));
    const lines = entries.map(({ level, message }) => `${level.toLowerCase()}: ${message}`);
    say("console", lines.join("\n") || "nothing");
  });
  await attempt("log", async () => {
    const log = await readLog(options.page, seen);
    const lines = log?.messages.map(({ tag, text }) => `${tag}: ${text}`);
    say("log", lines ? lines.join("\n") || "nothing" : "the server keeps none");
  });
  if (options.screenshot !== undefined) {
    await attempt("picture", async () => {
      const path = resolve(options.screenshot);
      writeFileSync(path, await session.screenshot());
      say("picture", path);
    });
  }
}

async function close(session, { driver, keep: keeps }) {
  if (keeps) {
    keep(driver, session);
    return say("session", `kept for the next time, in ${keptFile(driver)}`);
  }
  forget(driver);
  try {
    await session.end();
    say("session", "ended");
  } catch (error) {
    say("session", `could not be ended: ${error.message}`);
  }
}

function complain(error, { driver, page: address }) {
  const known = error instanceof WalkError || error instanceof WebDriverError;
  const code = error instanceof WebDriverError && ![UNREACHABLE, NO_DRIVER].includes(error.code) ? `the driver says “${error.code}”: ` : "";
  console.error(`error: ${code}${known ? error.message : error.stack}`);
  const hint = error.hint ?? hintFor(error.code, driver, address);
  if (hint) {
    console.error(`hint: ${hint}`);
  }
}

/** What mostly helps when a driver says no. */
function hintFor(code, driver, address) {
  const port = new URL(driver).port || "80";
  switch (code) {
    case UNREACHABLE:
    case NO_DRIVER:
      return `start one: \`safaridriver -p ${port}\`, \`chromedriver --port=${port}\` or \`geckodriver --port ${port}\``;
    case "session not created":
      return "an iPhone must be connected, unlocked, and have Remote Automation switched on; a driver for Safari has one session at a time";
    case "insecure certificate":
      return "let the phone trust the server's certificate; see docs/guide/serving.md";
    case "unknown error":
    case "timeout":
      return `can the phone open ${address}? For one on the network: \`rullama serve --lan --https\``;
    default:
      return undefined;
  }
}

function sleep(milliseconds) {
  return new Promise((done) => setTimeout(done, milliseconds));
}
