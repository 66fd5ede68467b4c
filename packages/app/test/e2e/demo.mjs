// The demo model, as somebody meets it who is here for the first time: offered, loaded by a question, right in what it says, and
// there again without a network.

import { App, PHONE, WIDE } from "./app.mjs";
import { faultsOf, settled } from "./access.mjs";
import { assert, equal, eventually } from "../../../../xtask/browser/assert.mjs";
import { equalTroubles } from "./models.mjs";

const TITLE = "Demo model, 16 MB, answers questions about rullama";

/** The app's own settings, but for the luck of the draw. */
const SETTINGS = { seed: 7 };

/** The last thing that was said. */
async function said(app) {
  const { state, text } = (await app.messages()).at(-1);
  equal(state, "complete", "state");
  return text;
}

/** The names of the demo models that the browser keeps, from the store's own files. */
function storedDemos() {
  const names = async (folder) => {
    const found = [];
    for await (const [name, entry] of folder.entries()) {
      found.push(...(entry.kind === "directory" ? await names(entry) : [name]));
    }
    return found;
  };
  return navigator.storage.getDirectory().then(names).then((all) => all.filter((name) => /^rullama-demo-.*\.file$/.test(name)));
}

/** From an empty browser to the first answer. */
export async function firstStart(checks, browser, origin) {
  const app = await App.open(browser, origin, { settings: SETTINGS });
  const { page } = app;
  await checks.check("at first start the demo model is offered, and nothing of it fetched unasked", async () => {
    await page.waitForSelector(`.welcome >> text=${TITLE}`);
    await app.shot("first-start");
    equal(await page.evaluate(storedDemos), [], "stored");
    equal(await page.locator(".model-chip").innerText(), "No model", "model");
  });

  await checks.check("the first question loads the demo model, which answers it", async () => {
    await page.evaluate(() => {
      const voice = document.getElementById("voice");
      window.announced = [];
      new MutationObserver(() => window.announced.push(voice.textContent)).observe(voice, { childList: true });
    });
    await page.fill(".composer-input", "What is 7 + 5?");
    await page.press(".composer-input", "Enter");
    await app.ready();
    await app.answered();
    equal((await page.evaluate(() => window.announced)).slice(0, 2), ["Loading Demo model, 16 MB", "The model is writing"], "announced");
    const answer = await said(app);
    assert(/\b12\b/.test(answer), answer);
    equal(await page.locator(".model-chip").innerText(), "Demo model", "model");
    assert(await page.locator(".thought").isVisible(), "it did not think, which it does unless told");
  });

  await checks.check("the Models page has one row for it, at the top, with what can be done with it", async () => {
    await app.go("#/models");
    await page.waitForSelector("text=On this server");
    await eventually(async () => {
      const row = await page.locator('[aria-label="Demo model"] li').innerText();
      assert(row.includes(TITLE) && row.includes("In use"), row);
      assert(await page.locator('[aria-label="Delete Demo model"]').isVisible(), "it cannot be deleted");
    });
    const { models } = await page.evaluate(async () => (await fetch("api/models")).json());
    assert(models.some(({ name }) => name === "demo.gguf"), "the server has none that could show twice");
    const others = await page.locator('[aria-label="Models on this server"]').innerText();
    assert(!/demo/i.test(others), others);
    equal(await page.locator('[aria-label="Stored models"] li').count(), 0, "other stored models");
    equal((await page.evaluate(storedDemos)).length, 1, "stored");
    await app.shot("models-demo");
  });
  return app;
}

/** More answers of the demo model that is loaded. */
export async function demoAnswers(checks, app) {
  const { page } = app;
  await checks.check("a new chat offers questions, which are asked by one press", async () => {
    await app.go("#/");
    await page.click(".sidebar >> text=New chat");
    await page.waitForSelector(".welcome >> text=Ask about rullama");
    await app.shot("demo-ready");
    await page.click(".questions >> text=What is rullama?");
    await page.waitForSelector(".message.assistant");
    equal(await page.evaluate(() => document.activeElement.getAttribute("aria-label")), "Message", "focus");
    await app.answered();
    const answer = await said(app);
    assert(/Gemma 4|browser/.test(answer), answer);
    await app.shot("demo-answer");
  });

  await checks.check("without thinking it is right as well", async () => {
    const thinking = (on) => page.waitForSelector(`.composer-below [data-setting="think"][aria-pressed="${on}"] >> text=Thinking ${on ? "on" : "off"}`);
    await thinking(true);
    await page.click('[data-setting="think"]');
    await thinking(false);
    await page.click(".sidebar >> text=New chat");
    await app.ask("What is 7 + 5?");
    assert(/\b12\b/.test(await said(app)), await said(app));
    assert(!(await page.locator(".thought").isVisible()), "it thought");
  });
}

/** At the next visit, without a network. `answers` asks it something as well. */
export async function demoOffline(checks, app, line, { answers }) {
  const { page } = app;
  await checks.check(`at the next visit, without a network, the demo model is there${answers ? " and answers" : ""}`, async () => {
    await app.go("#/");
    await app.withoutNetwork(line, async () => {
      await page.waitForSelector(".welcome >> text=Demo model");
      if (answers) {
        await app.ask("What is 2 + 2?");
        assert(/\b4\b/.test(await said(app)), await said(app));
      }
    });
  });
}

/** Every view of the demo model, in both colours and on a phone, until it is deleted. Media are emulated in Chromium only. */
export async function demoViews(checks, app) {
  const { page } = app;
  await checks.check("labels, contrast and width of the first start and of the demo model, wide and on a phone", async () => {
    const look = async (name) => {
      for (const [size, viewport] of [["wide", WIDE], ["phone", PHONE]]) {
        for (const colorScheme of ["light", "dark"]) {
          await page.setViewport(viewport);
          await page.emulateMedia({ "prefers-color-scheme": colorScheme });
          await settled(page);
          await app.shot(`view-${name}-${size}-${colorScheme}`);
          equal(await faultsOf(page), [], `faults of ${name}, ${size}, ${colorScheme}`);
        }
      }
      await page.setViewport(WIDE);
    };
    await app.go("#/");
    await page.click(".sidebar >> text=New chat");
    await page.waitForSelector(".welcome >> text=Ask about rullama");
    await look("demo-ready");
    await app.go("#/models");
    await page.waitForSelector("text=On this server");
    await page.waitForSelector('[aria-label="Delete Demo model"]');
    await look("models-demo");
    // Once it is deleted, the app is as at the first start.
    await page.click('[aria-label="Delete Demo model"]');
    await page.click("dialog >> text=Delete >> nth=-1");
    await page.waitForSelector('[data-state="empty"] .model-chip');
    await page.waitForSelector('[aria-label="Delete Demo model"]', { state: "detached" });
    equal(await page.evaluate(storedDemos), [], "stored");
    await app.go("#/");
    await page.waitForSelector(`.welcome >> text=${TITLE}`);
    await look("first-start");
  });
}

/** At an ordinary server, which knows nothing of ranges, in a browser that keeps no files. */
export async function demoWithoutStore(checks, browser, server) {
  const before = () => {
    StorageManager.prototype.getDirectory = () => Promise.reject(new DOMException("not here", "SecurityError"));
  };
  const app = await App.open(browser, server.origin, { settings: SETTINGS, before });
  const { page } = app;
  await checks.check("where the browser keeps no files, the demo model is read from any server, by one press", async () => {
    const fetched = () => server.requests.filter(({ path }) => path.endsWith(".gguf")).map(({ path }) => path);
    server.requests.length = 0;
    await page.waitForSelector(`.welcome >> text=${TITLE}`);
    equal(fetched(), [], "fetched unasked");
    await page.click("text=Load the demo model");
    await app.ready();
    assert(fetched().every((path) => /^\/assets\/demo-.{8}\.gguf$/.test(path)) && fetched().length > 0, fetched().join(" "));
    await page.click(".questions >> text=What is 7 + 5?");
    await page.waitForSelector(".message.assistant");
    await app.answered();
    assert(/\b12\b/.test(await said(app)), await said(app));
  });
  await equalTroubles(checks, app, "without a store");
  await app.close();
}

/** A connection that breaks in the middle of the model, and does not come back for longer than the store tries by itself. */
export async function demoInterrupted(checks, browser, server) {
  const app = await App.open(browser, server.origin, { settings: SETTINGS });
  const { page } = app;
  const fetched = () => server.requests.filter(({ path }) => path.endsWith(".gguf")).map(({ range }) => range);
  await checks.check("a first download of the demo model that breaks off is told in words", async () => {
    Object.assign(server.behaviour, { ranges: true, pause: 20, cut: 8e6 });
    server.requests.length = 0;
    await page.click("text=Load the demo model");
    await page.waitForSelector('.error-box[data-code="source.connection"]', { timeout: app.patience });
    const text = await page.locator(".error-box").innerText();
    assert(text.includes("The server can't be reached") && text.includes("The part that you have downloaded is kept"), text);
    equal(fetched()[0], "bytes=0-", "what was asked for first");
    await app.shot("demo-interrupted");
  });

  await checks.check("the next press goes on where it stopped, and fetches nothing twice", async () => {
    // Each try asked for what was missing then; after the last, nothing more came.
    const missing = fetched().at(-1);
    assert(Number(/^bytes=(\d+)-$/.exec(missing)?.[1]) > 0, `nothing was stored: ${missing}`);
    Object.assign(server.behaviour, { pause: 0, cut: Infinity });
    server.requests.length = 0;
    await page.click(".error-box >> text=Try again");
    await app.ready();
    equal(fetched(), [missing], "what was asked for");
    equal(await page.locator(".model-chip").innerText(), "Demo model", "model");
  });
  Object.assign(server.behaviour, { ranges: false, pause: 0, cut: Infinity });
  await app.close();
}
