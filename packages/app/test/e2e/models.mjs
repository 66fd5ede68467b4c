// Ways to a model: by address with a stop on the way, from the store, by file, from `rullama serve`.

import { readFile } from "node:fs/promises";
import { App, MODEL, MODEL_FILE } from "./app.mjs";
import { assert, equal, eventually } from "../../../../xtask/browser/assert.mjs";
import { SERVED } from "./rullama.mjs";

export async function byAddress(checks, app, server) {
  const { page } = app;
  await checks.check("an ordinary server shows no models of its own", async () => {
    server.requests.length = 0;
    await app.go("#/models");
    await page.waitForSelector("text=Where to get a model");
    await eventually(() => assert(server.requests.some(({ path }) => path === "/api/models"), "it was not asked"));
    // What the server says to this comes after what it said to the app.
    await page.evaluate(() => fetch("api/models"));
    equal(await page.locator("text=On this server").count(), 0, "sections");
    await app.shot("models-empty");
  });

  await checks.check("a download shows speed and time left, and can be stopped", async () => {
    // Slow enough to be stopped in the middle, however busy this machine is.
    Object.assign(server.behaviour, { pause: 1000, pieces: 64 * 1024 });
    await page.fill('input[type="url"]', `${app.origin}/models/${MODEL}.gguf`);
    await page.click("form >> text=Load");
    await page.waitForFunction(() => /B\/s · .*left/.test(document.querySelector(".stage")?.textContent ?? ""));
    await app.shot("models-downloading");
    await page.click(".progress-panel button");
    await page.waitForSelector("text=incomplete");
    await app.shot("models-stopped");
  });

  await checks.check("it is resumed where it stopped, loaded, and a chat can begin", async () => {
    Object.assign(server.behaviour, { pause: 0 });
    server.requests.length = 0;
    await page.click('button[title^="Resume"]');
    await app.ready();
    const first = server.requests.find(({ path, range, method }) => path.startsWith("/models/") && method === "GET" && range);
    assert(first && !first.range.startsWith("bytes=0-"), `it began anew: ${JSON.stringify(first)}`);
    await page.waitForSelector(".chat");
    await app.shot("chat-ready");
  });

  await checks.check("the stored model is listed with its size and in use", async () => {
    await app.go("#/models");
    await eventually(async () => {
      const row = await page.locator('[aria-label="Stored models"] li').innerText();
      assert(row.includes(MODEL) && row.includes("2.2 MB") && row.includes("in use"), row);
    });
    assert(/used · .* free/.test(await page.locator("section.page").innerText()), "no use of storage");
    await app.shot("models-stored");
  });

  await checks.check("a file that is not there leaves the model that runs, and is told as such", async () => {
    await page.fill('input[type="url"]', `${app.origin}/models/none.gguf`);
    await page.click("form >> text=Load");
    await page.waitForSelector('.error-box[data-code="source.status"]');
    const text = await page.locator(".error-box").innerText();
    assert(text.includes("no file at that address (HTTP 404)") && !text.includes("CORS"), text);
    equal(await page.locator(".model-chip").innerText(), MODEL, "model");
    assert(await page.locator(".card.current").isVisible(), "nothing runs");
    await app.shot("models-not-found");
    // The browser itself tells of it as well.
    app.troubles = app.troubles.filter((trouble) => !/404/.test(trouble));
  });

  await checks.check("a page is not downloaded as a model, and an address that nobody answers is told at once", async () => {
    await page.fill('input[type="url"]', `${app.origin}/index.html`);
    await page.click("form >> text=Load");
    await page.waitForSelector('.error-box[data-code="gguf.not_gguf"]');
    assert((await page.locator(".error-box").innerText()).includes("This isn't a GGUF file"), "another message");
    equal(await page.locator(".header-model").getAttribute("data-state"), "ready", "state");
    equal(await page.locator(".model-chip").innerText(), MODEL, "model");
    // Nothing listens there.
    await page.fill('input[type="url"]', "http://127.0.0.1:9/model.gguf");
    await page.click("form >> text=Load");
    await page.waitForSelector('.error-box[data-code="source.connection"]');
    equal(await page.locator(".header-model").getAttribute("data-state"), "ready", "state");
    app.troubles = app.troubles.filter((trouble) => !trouble.includes("127.0.0.1:9"));
    await eventually(async () => equal(await page.locator('[aria-label="Stored models"] li').count(), 1, "stored"));
    await page.reload();
    await page.waitForSelector('[aria-label="Stored models"] li');
  });

  await checks.check("the stored model is checked for damage", async () => {
    await page.click(`[aria-label="Check ${MODEL} for damage"]`);
    await page.waitForSelector("text=is not damaged");
  });
}

/** Out of the browser, as a file. */
export async function saved(checks, app) {
  const { page } = app;
  await checks.check("the stored model is saved as a file, byte for byte", async () => {
    const saved = await page.download(`[aria-label="Save ${MODEL} as a file"]`);
    assert(saved.equals(await readFile(MODEL_FILE)), "the bytes differ");
  });
}

/** In the page, before the app: the first look at a model, or the first load, fails as on a GPU with too little memory. */
function scarceMemory() {
  const post = Worker.prototype.postMessage;
  let first = true;
  Worker.prototype.postMessage = function (message, ...rest) {
    if (message?.kind !== "call" || !["inspect", "load"].includes(message.name) || !first) {
      return post.call(this, message, ...rest);
    }
    first = false;
    const error = { code: "memory.too_large", message: "the model needs 9 GiB", details: { largestContext: 768 } };
    setTimeout(() => this.dispatchEvent(new MessageEvent("message", { data: { kind: "failed", id: message.id, error } })));
  };
}

export async function tooLarge(checks, browser, origin) {
  const app = await App.open(browser, origin, { hash: "#/models", settings: { context: 262144, maxTokens: 8 }, before: scarceMemory });
  const { page } = app;
  const choose = async () => {
    await page.chooseFile("text=Choose a file", MODEL_FILE);
  };
  await checks.check("a model that does not fit is told, and a context that fits is one press away", async () => {
    await choose();
    await page.waitForSelector('.error-box[data-code="memory.too_large"]');
    await app.shot("models-too-large");
    await page.click("text=Load with 768 tokens");
    await app.ready();
    await app.go("#/models");
    assert((await page.locator(".card.current").innerText()).includes("768 tokens of context"), "another context");
  });
  await checks.check("a context beyond what the model was made for is told in words", async () => {
    await page.click('[aria-label="Settings"]');
    await page.fill('[data-setting="context"]', "262144");
    await page.press('[data-setting="context"]', "Tab");
    await page.click("dialog >> text=Load again");
    await page.waitForSelector('.error-box[data-code="context.too_large"]');
    assert((await page.locator(".error-box").innerText()).includes("supports a context of up to"), "no advice");
  });
  await app.close();
}

/** In the page: drops a file, given by its name and its bytes as base64. */
function drop([name, text]) {
  const transfer = new DataTransfer();
  transfer.items.add(new File([Uint8Array.from(atob(text), (char) => char.charCodeAt(0))], name));
  dispatchEvent(new DragEvent("dragover", { dataTransfer: transfer, cancelable: true }));
  dispatchEvent(new DragEvent("drop", { dataTransfer: transfer, cancelable: true }));
}

export async function byFile(checks, browser, origin) {
  const app = await App.open(browser, origin, { hash: "#/models" });
  const { page } = app;
  await checks.check("a file that is not a model is refused by name", async () => {
    await page.chooseFile("text=Choose a file", { name: "notes.gguf", content: Buffer.alloc(5000, "not a model ") });
    await page.waitForSelector('.error-box[data-code="gguf.not_gguf"]');
    const text = await page.locator(".error-box").innerText();
    assert(text.includes("This isn't a GGUF file") && text.includes("“notes.gguf”") && !/\bat \w+ \(/.test(text), text);
    await app.shot("models-error");
  });

  await checks.check("a dropped file is loaded without being stored", async () => {
    await page.evaluate(drop, [`${MODEL}.gguf`, (await readFile(MODEL_FILE)).toString("base64")]);
    await app.ready();
    await app.go("#/models");
    await page.waitForSelector(".card.current");
    equal(await page.locator('[aria-label="Stored models"]').count(), 0, "stored");
  });

  await checks.check("a PDF that is dropped during a reply changes nothing, and is told by name", async () => {
    await page.click("section.page >> text=Chat");
    await app.setMaximum(200);
    await app.begin("Hello");
    await page.evaluate(drop, ["paper.pdf", Buffer.from("%PDF-1.7 and so on").toString("base64")]);
    await page.waitForSelector(".notice >> text=This isn't a GGUF file");
    assert((await page.locator(".notice").innerText()).includes("“paper.pdf”"), "no name");
    await app.shot("chat-dropped-pdf");
    await app.answered();
    equal((await app.messages()).map(({ state }) => state), ["complete", "complete"], "states");
    equal([await page.locator(".model-chip").innerText(), await page.locator(".chat").count()], [MODEL, 1], "model and page");
    await page.click('.notice [aria-label="Dismiss"]');
  });

  await checks.check("a full context makes room: the oldest messages are left out, or summarised", async () => {
    await app.setMaximum(8);
    await app.ask("word ".repeat(180).trim());
    await app.send("word ".repeat(180).trim());
    await page.waitForSelector('.error-box[data-code="context.overflow"]', { timeout: app.patience });
    await app.shot("chat-full");
    await page.click(".error-box button >> text=Leave out the oldest messages");
    await page.waitForSelector('.message:last-child[data-state="complete"] .trim-note', { timeout: app.patience });
    const note = await page.locator(".trim-note").innerText();
    assert(/^The \d oldest messages were left out/.test(note), note);
    await app.shot("chat-trimmed");
    await app.send("word ".repeat(180).trim());
    await page.waitForSelector('.error-box[data-code="context.overflow"]', { timeout: app.patience });
    await page.click(".error-box button >> text=Summarise them");
    await page.waitForSelector('.message:last-child[data-state="complete"] details.trim-note', { timeout: app.patience });
    await app.shot("chat-summarised");
  });

  await checks.check("after a model that is not kept, a message waits, and says so until one is chosen", async () => {
    await page.reload();
    await page.waitForSelector(".message");
    await page.fill(".composer-input", "Waiting");
    await page.press(".composer-input", "Enter");
    await page.waitForSelector(".notice >> text=Choose a model first");
    equal(await page.inputValue(".composer-input"), "Waiting", "message");
    equal(await page.locator(".model-chip").innerText(), "No model", "model");
    await page.click(".notice >> text=Models");
    await page.chooseFile("text=Choose a file", MODEL_FILE);
    await page.waitForSelector(".notice", { state: "detached" });
    await page.waitForSelector(".message");
    equal(await page.inputValue(".composer-input"), "Waiting", "message");
  });
  await equalTroubles(checks, app, "by file");
  await app.close();
}

/** From `rullama serve`: its model, stored and loaded; what the rest of a walk begins with. */
export async function fromServer(checks, app) {
  const { page } = app;
  await checks.check("a model of the server is listed, stored and loaded", async () => {
    await app.go("#/models");
    await page.waitForSelector("text=On this server");
    const row = await page.locator('[aria-label="Models on this server"] li').innerText();
    assert(row.includes(SERVED) && row.includes("2.2 MB") && row.includes("1.8M") && row.includes("Q8_0"), row);
    await page.click(`button[title="Use ${SERVED}"]`);
    await app.ready();
    await page.waitForSelector(".chat");
    await app.shot("chat-ready");
    await app.go("#/models");
    await eventually(async () => assert((await page.locator('[aria-label="Stored models"]').innerText()).includes(SERVED), "not stored"));
    assert(/used · .* free/.test(await page.locator("section.page").innerText()), "no use of storage");
    await app.shot("models-stored");
  });
}

export async function pulledAnew(checks, browser, rullama) {
  const app = await App.open(browser, rullama.origin, { hash: "#/models" });
  const { page } = app;
  await checks.check("a model that was pulled anew replaces the stored one after a question", async () => {
    await page.click(`button[title="Use ${SERVED}"]`);
    await app.ready();
    await rullama.pull("micro-e2b-Q4_0.gguf");
    // The list is asked for anew when the page is opened.
    await app.go("#/device");
    await app.go("#/models");
    await page.waitForFunction(() => document.querySelector('[aria-label="Models on this server"]')?.textContent.includes("1.7 MB"));
    await page.click(`[aria-label="Models on this server"] button`);
    await page.waitForSelector('.error-box[data-code="storage.exists"]');
    await app.shot("models-replace");
    await page.click(".error-box >> text=Replace it");
    await app.ready();
    await app.go("#/models");
    await eventually(async () => assert((await page.locator('[aria-label="Stored models"]').innerText()).includes("1.7 MB"), "still the old one"));
  });
  await checks.check("a stored model is deleted after a question, also while in use", async () => {
    await page.click(`[aria-label="Delete ${SERVED}"]`);
    await app.shot("dialog-delete");
    await page.click("dialog >> text=Delete >> nth=-1");
    await page.waitForFunction(() => !document.querySelector('[aria-label="Stored models"]'));
    await page.waitForSelector('[data-state="empty"] .model-chip');
  });
  await equalTroubles(checks, app, "from the server");
  await app.close();
  await rullama.pull(`${MODEL}.gguf`);
}

/** Errors reach the server's log where that is asked for, and only there. */
export async function reports(checks, browser, rullama) {
  const app = await App.open(browser, rullama.origin, { hash: "#/models" });
  const { page } = app;
  const fail = async () => {
    await page.fill('input[type="url"]', `${rullama.origin}/models/none.gguf`);
    await page.click("form >> text=Load");
    await page.waitForSelector(".error-box");
  };
  await checks.check("errors go to the server's log only where that is switched on", async () => {
    await fail();
    // Whatever the page had to send, it has sent before this.
    await page.evaluate(() => fetch("api/models"));
    equal(await rullama.logs("load"), [], "unasked");
    // A link only makes the app ask. Until the user allows it, nothing is sent and nothing is stored.
    const stored = () => page.evaluate(() => JSON.parse(localStorage.getItem("rullama.settings") ?? "{}").report ?? false);
    for (const answer of ["Not now", "Allow"]) {
      await app.go("?report&token=secret#/models");
      await page.waitForSelector("dialog.report-question");
      equal([await stored(), await page.evaluate(() => location.search)], [false, ""], "before the answer");
      equal(await rullama.logs("load"), [], "before the answer");
      await page.click(`dialog.report-question >> text=${answer}`);
      await page.waitForFunction(() => !document.querySelector("dialog.report-question"));
      equal(await stored(), answer === "Allow", `after “${answer}”`);
    }
    await page.click('[aria-label="Settings"]');
    assert(await page.locator('[data-setting="report"]').isVisible(), "no setting");
    assert(await page.evaluate(() => document.querySelector('[data-setting="report"]').checked), "not switched on");
    await app.leaveDialog();
    await fail();
    const logs = await eventually(async () => {
      const sent = await rullama.logs("load");
      equal(sent.length, 1, "reports");
      return sent;
    });
    assert(/^(network|source)\.\w+: .*none\.gguf/.test(logs[0].text), logs[0].text);
    // Switched off again, errors stay here.
    await page.click('[aria-label="Settings"]');
    await page.click('[data-setting="report"]');
    await app.leaveDialog();
    equal(await stored(), false, "after switching it off");
    await app.reload();
    await fail();
    await page.evaluate(() => fetch("api/models"));
    equal((await rullama.logs("load")).length, 1, "reports after switching it off");
  });
  await app.close();
}

/** No errors on the console, no request to anywhere else. */
export function equalTroubles(checks, app, where) {
  return checks.check(`nothing complained, and nothing else was asked for (${where})`, async () => {
    equal(app.troubles, [], "troubles");
  });
}
