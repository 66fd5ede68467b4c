// `cargo xtask phone` against chromedriver, in a Chromium without a window that only emulates a GPU, so that the CPU computes. Each step
// reads what the walk prints, as people do.

import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

import { skipSelfTest } from "../../packages/app/test/e2e/app.mjs";
import { serve } from "../../packages/app/test/e2e/server.mjs";
import { assert, equal } from "../browser/assert.mjs";
import { CHROMIUM_FLAGS, find } from "../browser/browsers.mjs";
import { keptFile, readKept } from "./kept.mjs";
import { takeConsole } from "./page.mjs";
import { Driver } from "./webdriver.mjs";

const MODEL = "micro-e2b-Q8_0";
const SAID = "Hello, “phone” 👋";
const APP = fileURLToPath(new URL("../../packages/app/dist/index.html", import.meta.url));
const WALK = fileURLToPath(new URL("phone.mjs", import.meta.url));

/** Small and the same every time. */
const SETTINGS = ["--set", "context=512", "--set", "maxTokens=8", "--set", "seed=3", "--set", "think=false"];

let folder;
let picture;
let server;
let chromedriver;
let checks;

export async function setUp() {
  if (!existsSync(APP)) {
    throw new Error("the app is not built: cargo xtask web && npm run build --prefix packages/app");
  }
  folder = mkdtempSync(join(tmpdir(), "rullama-phone-"));
  picture = join(folder, "page.png");
  server = await serve();
  server.behaviour.api = true;
  chromedriver = await startDriver();
  // The browser ends with its driver, and nothing is left behind, however the run ends.
  const end = () => {
    chromedriver.process.kill();
    rmSync(keptFile(chromedriver.address), { force: true });
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
  };
  process.on("exit", end);
  const close = () => {
    process.off("exit", end);
    end();
    server.close();
  };
  return { close };
}

export const tests = [
  {
    title: "phone: the command line",
    browsers: ["chromium"],
    drives: true,
    quick: true,
    async run(t) {
      checks = t;
      await commandLine();
    },
  },
  {
    title: "phone: the walk",
    // The driver that is installed with it starts it.
    browsers: ["chromium"],
    drives: true,
    async run(t) {
      checks = t;
      await beforeTheWalk();
      await wholeWalk();
      await keptSession();
      await failures();
      await cleaning();
    },
  },
];

async function commandLine() {
  await checks.check("a wrong command line is told, with status 2", async () => {
    for (const [words, told] of [
      [[], "--driver is needed"],
      [["--driver", "nowhere"], "`nowhere` is not an address"],
      [["--driver", "http://a", "--timeout", "soon"], "`soon` is not a number of seconds"],
      [["--driver", "http://a", "--set", "context"], "`context` is not NAME=VALUE"],
      [["--driver", "http://a", "--capabilities", "[]"], "`[]` is not a JSON object"],
      [["--driver", "http://a", "--fly"], "--fly"],
    ]) {
      const { status, errors } = await run(words);
      equal(status, 2, `status of ${words.join(" ")}`);
      assert(errors.includes(told) && errors.includes("Usage:"), errors);
    }
  });
  await checks.check("help is given when it is asked for", async () => {
    const { status, output } = await run(["--help"]);
    assert(status === 0 && output.includes("--screenshot FILE"), output);
  });
}

/** In the page, before the app: while this is set, models are not loaded, as if it took forever. */
function holdLoads() {
  const post = Worker.prototype.postMessage;
  Worker.prototype.postMessage = function (message, ...rest) {
    if (message?.name !== "load" || localStorage.getItem("hold-loads") === null) {
      post.call(this, message, ...rest);
    }
  };
}

/** The first walk, which starts the session that the next ones go on with. */
async function beforeTheWalk() {
  await checks.check("a page without the app is told, and the session kept", async () => {
    const { status, output, errors } = await start(["--page", `${server.origin}/manifest.webmanifest`, "--keep"]);
    equal(status, 1, "status");
    assert(errors.includes("manifest.webmanifest is not the app"), errors);
    assert(/^session  new: chrome [\d.]+ on \w+ \([0-9a-f]+\)$/m.test(output), output);
    assert(/^session  kept for the next time, in .*\.json$/m.test(output), output);
  });
  const { id } = readKept(chromedriver.address);
  const script = { cmd: "Page.addScriptToEvaluateOnNewDocument", params: { source: `(${skipSelfTest})(); (${holdLoads})();` } };
  await new Driver(chromedriver.address).command("POST", `/session/${id}/goog/cdp/execute`, script);
}

async function wholeWalk() {
  server.logs.push({ tag: "old", text: "from before the walk" });
  // Slow enough that progress is seen.
  Object.assign(server.behaviour, { pause: 300 });
  const walk = await start(["--model", address(MODEL), "--say", SAID, "--screenshot", picture, "--keep", ...SETTINGS], (line, { told }) => {
    // What a page would report while the walk is under way.
    if (line.startsWith("page ") && !told.logged) {
      told.logged = true;
      server.logs.push({ tag: "phone", text: "reported meanwhile" });
    }
  });
  Object.assign(server.behaviour, { pause: 0 });
  await checks.check("a walk from navigation to the reply succeeds", async () => {
    equal(walk.status, 0, `status; it printed\n${walk.output}\n${walk.errors}\n`);
  });
  const printed = (title, expression) =>
    checks.check(title, async () => assert(expression.test(walk.output), `${expression} is not in\n${walk.output}`));
  await printed("the session is told, with its browser", /^session  kept one goes on: chrome [\d.]+ on \w+ \([0-9a-f]+\)$/m);
  await printed("the page is told", new RegExp(`^page     ${server.origin}/ “rullama” in [\\d.]+ s$`, "m"));
  await printed("the graphics processor is told", /^gpu      .*swiftshader/im);
  await printed("the model is told", new RegExp(`^model    ${address(MODEL)}, by its address$`, "m"));
  await printed("progress is told", /^load     (Downloading|Reading the weights|Checking) · \d+ %/m);
  await printed("that the model is ready is told", new RegExp(`^load     ${MODEL} is ready in [\\d.]+ s$`, "m"));
  await printed("what was said is told", new RegExp(`^say      ${SAID}$`, "m"));
  await checks.check("the reply is told as the page shows it", async () => {
    const [last] = (await shown()).slice(-1);
    assert(walk.output.includes(`\nreply    ${last.replaceAll("\n", "\n         ") || "(nothing)"}\nspeed `), `“${last}” is not in\n${walk.output}`);
  });
  // The page tells no speed of a reply of a few tokens.
  await printed("its speed is told", /^speed    .*\b(?:[1-4] tokens?|\d+ tokens · [\d.]+ tokens\/s) · Time to first token .*; [\d.]+ s in all$/m);
  await printed("the console is told", /^console  /m);
  await checks.check("of the server's log, what came during the walk is told", async () => {
    assert(/^log      phone: reported meanwhile$/m.test(walk.output), walk.output);
    assert(!walk.output.includes("from before the walk"), walk.output);
  });
  await checks.check("the picture is a PNG file", async () => {
    const start = readFileSync(picture).subarray(0, 8).toString("latin1");
    equal(start, "\x89PNG\r\n\x1a\n", "first bytes");
  });
  await checks.check("the session is kept", async () => {
    equal((await shown())[0], SAID, "what the kept page shows, with every character");
  });
}

async function keptSession() {
  const { id } = readKept(chromedriver.address);
  server.requests.length = 0;
  server.behaviour.newer = true;
  await session().run(() => localStorage.setItem("hold-loads", "yes"));
  const walk = await start(["--model", MODEL, "--timeout", "5", "--keep"], (line, { told }) => {
    if (line.startsWith("model ") && !told.complained) {
      told.complained = true;
      void session().run(() => console.warn("the page complains"));
    }
  });
  await checks.check("the next walk goes on with the kept session, and tells that loading takes too long", async () => {
    equal(walk.status, 1, `status; it printed\n${walk.output}\n${walk.errors}\n`);
    assert(/error: the model was not ready.* after 5 seconds/.test(walk.errors), walk.errors);
    assert(walk.output.startsWith("session  kept one goes on: chrome") && walk.output.includes(id), walk.output);
  });
  await session().run(() => localStorage.removeItem("hold-loads"));
  await checks.check("it takes the app's newer version", async () => {
    assert(/^page     the server has a newer version .* takes over$/m.test(walk.output), walk.output);
  });
  await checks.check("it uses the stored model, without asking the server for it", async () => {
    assert(walk.output.includes(`model    ${MODEL}, stored in the browser`), walk.output);
    equal(server.requests.filter(({ path }) => path.startsWith("/models/")), [], "requests");
  });
  await checks.check("settings of the walk before are still set", async () => {
    const { context, maxTokens, think, report } = await session().run(() => JSON.parse(localStorage.getItem("rullama.settings")));
    equal([context, maxTokens, think, report], [512, 8, false, true], "settings");
  });
  await checks.check("the driver's console is told; without it there is the page's own", async () => {
    assert(/^console  (.*\n +)*warning: .*the page complains/m.test(walk.output), walk.output);
    const own = await session().run(takeConsole);
    assert(own.some(({ level, message }) => level === "warn" && message === "the page complains"), JSON.stringify(own));
  });
}

async function failures() {
  await checks.check("no driver at the address is told, with how to start one", async () => {
    const driver = await nobody();
    const { status, errors } = await run(["--driver", driver, "--page", server.origin]);
    equal(status, 1, "status");
    const told = [`no WebDriver server answers at ${driver.slice(0, -1)}: connect ECONNREFUSED`, `safaridriver -p ${new URL(driver).port}`];
    assert(told.every((text) => errors.includes(text)), errors);
  });
  await checks.check("another server at the address is told", async () => {
    const { status, errors } = await run(["--driver", server.origin, "--page", server.origin]);
    equal(status, 1, "status");
    assert(errors.includes("is no WebDriver server: it answered 404"), errors);
  });
  await checks.check("a page that nobody serves is told", async () => {
    const { status, errors } = await start(["--page", await nobody(), "--keep"]);
    equal(status, 1, "status");
    assert(/the driver says “unknown error”: .*ERR_\w+/.test(errors) && errors.includes("hint: can the phone open"), errors);
  });
  await checks.check("a name that no model has is told, with those there are", async () => {
    const { status, errors } = await start(["--model", "no-such-model", "--keep"]);
    equal(status, 1, "status");
    assert(errors.includes(`there is no model \`no-such-model\` (in the browser: ${MODEL}; of the server: micro:e2b; of the app: Demo model)`), errors);
  });
  await checks.check("an address without a model is told in the page's words; console, log and picture come all the same", async () => {
    rmSync(picture, { force: true });
    const { status, output, errors } = await start(["--model", address("none"), "--screenshot", picture, "--keep"]);
    equal(status, 1, "status");
    assert(/error: the model could not be loaded: .+404/.test(errors), errors);
    assert(/^console  /m.test(output) && /^log      /m.test(output), output);
    assert(existsSync(picture), "no picture");
  });
  await checks.check("a session that is gone is told, and a new one started", async () => {
    const { id } = readKept(chromedriver.address);
    await session().end();
    const { output } = await start(["--model", "no-such-model", "--keep"]);
    assert(output.startsWith("session  the kept one is gone (invalid session id)\nsession  new: chrome"), output);
    assert(readKept(chromedriver.address).id !== id, "the old one is still remembered");
  });
}

async function cleaning() {
  await checks.check("a model that is not ready in time is told, with how far it was", async () => {
    Object.assign(server.behaviour, { pause: 1500, pieces: 256 * 1024 });
    const { status, output, errors } = await start(["--model", "micro:e2b", "--timeout", "3", "--keep", ...SETTINGS]);
    equal(status, 1, "status");
    assert(/error: the model was not ready \(Downloading · .+\) after 3 seconds/.test(errors), `${output}${errors}`);
  });
  await checks.check("a page that was loaded anew meanwhile is told", async () => {
    const walk = start(["--model", "micro:e2b", "--keep"], (line, { told }) => {
      if (line.startsWith("load ") && !told.reloaded) {
        told.reloaded = true;
        void session().refresh();
      }
    });
    const { status, errors, output } = await walk;
    equal(status, 1, "status");
    assert(errors.includes("the browser ended the page and loaded it anew"), `${output}${errors}`);
    server.behaviour.pause = 0;
  });
  await checks.check("cleaning alone removes all that the page stored, and loads nothing", async () => {
    const { status, output, errors } = await start(["--clean", "--keep"]);
    equal(status, 0, `status; it printed\n${output}${errors}\n`);
    assert(/^clean    removed [1-9]\d* stored files with .*, 1 databases, 1 service workers, 1 caches, [1-9] settings$/m.test(output), output);
    assert(!/^(model|load|say|reply) /m.test(output), output);
  });
  await checks.check("nothing is left in the browser", async () => {
    // A page of the same origin that stores nothing itself.
    await session().open(`${server.origin}/icons/icon.svg`);
    const left = await session().runAsync(async () => {
      const files = [];
      for await (const name of (await navigator.storage.getDirectory()).keys()) {
        files.push(name);
      }
      const workers = await navigator.serviceWorker.getRegistrations();
      return [files.length, (await indexedDB.databases()).length, (await caches.keys()).length, workers.length, localStorage.length];
    });
    equal(left, [0, 0, 0, 0, 0], "files, databases, caches, service workers, settings");
  });
  await checks.check("without --keep the session ends and is forgotten", async () => {
    const { status, output } = await start(["--clean"]);
    equal(status, 0, "status");
    assert(/^session  ended$/m.test(output), output);
    equal(readKept(chromedriver.address), undefined, "kept");
  });
  await checks.check("where there is no other model, that of the app is used; a walk that is interrupted ends its session", async () => {
    server.behaviour.api = false;
    const { status, output } = await start([], (line, { told, child }) => {
      if (line.startsWith("load ") && !told.stopped) {
        told.stopped = true;
        child.kill("SIGINT");
      }
    });
    equal(status, 130, "status");
    assert(/^model    Demo model, of the app$/m.test(output) && /^session  ended$/m.test(output), output);
  });
}

/** The address of a test model. */
function address(name) {
  return `${server.origin}/models/${name}.gguf`;
}

/** The session that the last walk kept. */
function session() {
  return new Driver(chromedriver.address).attach(readKept(chromedriver.address).id);
}

/** The texts of the messages that its page shows. */
function shown() {
  return session().run(() => [...document.querySelectorAll(".message .content")].map((content) => content.innerText.trim()));
}

/** An address where nobody answers. */
function nobody() {
  return new Promise((resolve) => {
    const taken = createServer().listen(0, "127.0.0.1", () => {
      const { port } = taken.address();
      taken.close(() => resolve(`http://127.0.0.1:${port}/`));
    });
  });
}

/** A walk with this driver and, unless another is given, the page. */
function start(words, each) {
  const page = words.includes("--page") ? [] : ["--page", `${server.origin}/`];
  const time = words.includes("--timeout") ? [] : ["--timeout", "300"];
  const capabilities = { browserName: "chrome", "goog:chromeOptions": { args: CHROMIUM_FLAGS, binary: find("chromium") } };
  return run(["--driver", chromedriver.address, "--capabilities", JSON.stringify(capabilities), ...page, ...time, ...words], each);
}

/** Runs the command; `each` gets every line when it is printed, the process, and an object for its own notes. */
function run(words, each) {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [WALK, ...words], { stdio: ["ignore", "pipe", "pipe"] });
    const told = {};
    let [output, errors, rest] = ["", "", ""];
    child.stdout.setEncoding("utf8").on("data", (text) => {
      output += text;
      const lines = (rest + text).split("\n");
      rest = lines.pop();
      lines.forEach((line) => each?.(line, { child, told }));
    });
    child.stderr.setEncoding("utf8").on("data", (text) => (errors += text));
    child.on("error", reject);
    child.on("close", (status) => resolve({ status, output, errors }));
  });
}

/** chromedriver at a port that is free. What it and its browsers write goes into the test's folder. */
function startDriver() {
  return new Promise((resolve, reject) => {
    const child = spawn("chromedriver", ["--port=0"], { stdio: ["ignore", "pipe", "inherit"], env: { ...process.env, TMPDIR: folder } });
    let text = "";
    child.stdout.setEncoding("utf8").on("data", (piece) => {
      text += piece;
      const port = /successfully on port (\d+)/.exec(text)?.[1];
      if (port) {
        resolve({ process: child, address: `http://127.0.0.1:${port}/` });
      }
    });
    child.on("error", (error) => reject(new Error(`chromedriver cannot be started: ${error.message}. On Debian:\n  apt-get install chromium-driver`)));
    child.on("exit", () => reject(new Error(`chromedriver ended: ${text}`)));
  });
}
