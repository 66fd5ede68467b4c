// Images and sounds: attached in every way, kept, sent to the demo model, exported, and refused by a model that reads text only.

import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { assert, equal, eventually } from "../../../../xtask/browser/assert.mjs";
import { faultsOf, settled } from "./access.mjs";
import { App, PHONE, SETTINGS, WIDE } from "./app.mjs";

const demoFile = (name) => fileURLToPath(new URL(`../../../../testdata/demo/${name}`, import.meta.url));
const PICTURE = "demo-image-1.png";
const SOUND = "demo-audio-7.wav";

/** The demo model's most likely words. */
const CERTAIN = { ...SETTINGS, context: 1024, maxTokens: 32, temperature: 0 };

/** In the page: pastes or drops files, as a browser does when it has taken them from another program. */
function bring({ how, files }) {
  const data = new DataTransfer();
  for (const { name, type, content } of files) {
    data.items.add(new File([Uint8Array.from(atob(content), (one) => one.charCodeAt(0))], name, { type }));
  }
  const target = how === "paste" ? document.querySelector(".composer-input") : document.body;
  if (how === "paste") {
    // Firefox gives events that pages make no clipboard.
    const event = new ClipboardEvent("paste", { bubbles: true, cancelable: true });
    target.dispatchEvent(Object.defineProperty(event, "clipboardData", { value: data }));
  } else {
    target.dispatchEvent(new DragEvent("dragover", { dataTransfer: data, bubbles: true, cancelable: true }));
    target.dispatchEvent(new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true }));
  }
}

async function fileOf(name, type, as = name) {
  return { name: as, type, content: (await readFile(demoFile(name))).toString("base64") };
}

/** In the page: how many images and sounds the database has. */
function stored() {
  return new Promise((resolve, reject) => {
    const opening = indexedDB.open("rullama");
    opening.onerror = () => reject(opening.error);
    opening.onsuccess = () => {
      const counting = opening.result.transaction("attachments").objectStore("attachments").count();
      counting.onsuccess = () => {
        opening.result.close();
        resolve(counting.result);
      };
    };
  });
}

/** In the page: replaces the database by one of version 1, as apps without attachments made it. */
function makeOldDatabase() {
  const old = {
    id: "0123456789abcdef0123456789abcdef",
    title: "From before",
    named: false,
    system: "",
    createdAt: 1,
    updatedAt: 1,
    messages: [{ id: "q", parent: null, role: "user", content: "A question from before", createdAt: 1, state: "complete" }],
    shown: { "": "q" },
  };
  return new Promise((resolve, reject) => {
    const deleting = indexedDB.deleteDatabase("rullama");
    deleting.onerror = () => reject(deleting.error);
    deleting.onsuccess = () => {
      const opening = indexedDB.open("rullama", 1);
      opening.onupgradeneeded = () => opening.result.createObjectStore("conversations", { keyPath: "id" }).put(old);
      opening.onerror = () => reject(opening.error);
      opening.onsuccess = () => {
        opening.result.close();
        resolve();
      };
    };
  });
}

/** The names of what is attached to the draft. */
function drafted(page) {
  return page.$$eval(".composer .attachment img, .composer .attachment audio", (all) => all.map((one) => one.getAttribute("alt") ?? one.getAttribute("aria-label")));
}

/** Waits until this is attached to the draft. */
function awaitDraft(page, names) {
  return eventually(async () => equal(await drafted(page), names, "attached"));
}

async function choose(page, item, file) {
  await page.click('[aria-label="Attach"]');
  await page.chooseFile(`.attach-menu >> text=${item}`, file);
}

/** An image has been decoded, so it is really shown. */
async function isShown(page, selector) {
  await page.waitForFunction((one) => document.querySelector(one)?.naturalWidth > 0, selector);
}

/** Without a model: everything can be attached, and waits for one. */
export async function attaching(checks, browser, origin) {
  const app = await App.open(browser, origin, { settings: CERTAIN });
  const { page } = app;
  const picture = await fileOf(PICTURE, "image/png");
  const sound = await fileOf(SOUND, "audio/wav");

  await checks.check("a file of an app without attachments is taken over: the chat is there, and images can be kept", async () => {
    await page.evaluate(makeOldDatabase);
    await app.reload();
    await page.waitForSelector(".conversation-title >> text=From before");
    equal(await page.evaluate(stored), 0, "attachments");
    await page.click(".sidebar >> text=New chat");
  });

  await checks.check("images and sounds are attached by the file dialog, and removed", async () => {
    await choose(page, "Images", demoFile(PICTURE));
    await awaitDraft(page, [PICTURE]);
    await isShown(page, ".composer .thumbnail img");
    await choose(page, "Sounds", demoFile(SOUND));
    await awaitDraft(page, [PICTURE, SOUND]);
    await settled(page);
    equal(await faultsOf(page), [], "faults");
    await page.click(`[aria-label="Remove ${PICTURE}"]`);
    await awaitDraft(page, [SOUND]);
    equal(await page.evaluate(() => document.activeElement.getAttribute("aria-label")), "Message", "focus");
    await page.click(`[aria-label="Remove ${SOUND}"]`);
    await awaitDraft(page, []);
    await eventually(async () => equal(await page.evaluate(stored), 0, "freed"));
  });

  await checks.check("images and sounds are pasted, and dropped anywhere; other files give an error, and the rest is attached", async () => {
    await page.evaluate(bring, { how: "paste", files: [{ ...picture, name: "pasted.png" }] });
    await awaitDraft(page, ["pasted.png"]);
    await app.go("#/device");
    await page.evaluate(bring, { how: "drop", files: [sound, { ...picture, name: "dropped.png", type: "" }] });
    await awaitDraft(page, ["pasted.png", SOUND, "dropped.png"]);
    await page.evaluate(bring, { how: "paste", files: [{ ...sound, name: "broken.png", type: "image/png" }] });
    await page.waitForSelector(".notice >> text=“broken.png” was not attached");
    await page.click('.notice [aria-label="Dismiss"]');
    equal(await drafted(page), ["pasted.png", SOUND, "dropped.png"], "attached");
  });

  await checks.check("a reload keeps them in the draft", async () => {
    await app.reload();
    await awaitDraft(page, ["pasted.png", SOUND, "dropped.png"]);
    await isShown(page, ".composer .thumbnail img");
    for (const name of ["pasted.png", SOUND, "dropped.png"]) {
      await page.click(`[aria-label="Remove ${name}"]`);
    }
    await awaitDraft(page, []);
  });

  await checks.check("the microphone is recorded, with its limit told before", async () => {
    await page.click('[aria-label="Record a sound"]');
    await page.waitForSelector("dialog >> text=at most 30 seconds");
    await page.waitForFunction(() => /^0:0[1-9] of 0:30$/.test(document.querySelector(".recorder-time")?.textContent ?? ""));
    await app.shot("recording");
    equal(await faultsOf(page), [], "faults");
    await page.click("dialog >> text=Stop and attach");
    await app.dialogClosed();
    await eventually(async () => assert(/^recording-\d{6}\.wav$/.test((await drafted(page))[0] ?? ""), JSON.stringify(await drafted(page))));
    await page.waitForFunction(() => document.querySelector(".composer audio")?.duration > 0.5);
    await page.click('[aria-label^="Remove recording"]');
    await page.click('[aria-label="Record a sound"]');
    await page.waitForSelector(".recorder");
    await app.leaveDialog();
    equal(await drafted(page), [], "after Esc");
  });

  await checks.check("a recording ends at the limit with a message, and can be played before it is attached", async () => {
    await page.click('[aria-label="Record a sound"]');
    await page.waitForSelector(".recorder");
    await page.evaluate(() => {
      const { now } = performance;
      performance.now = () => now.call(performance) + 26_500;
    });
    await page.waitForSelector(".recorder-left >> text=ends in");
    await page.waitForSelector("dialog >> text=The recording ended at 30 seconds");
    await page.waitForFunction(() => document.querySelector("dialog audio")?.duration > 0.5);
    await app.shot("recording-full");
    equal(await faultsOf(page), [], "faults");
    await page.click("dialog >> text=Discard");
    await app.dialogClosed();
    equal(await drafted(page), [], "after Discard");
    await app.reload();
  });

  await checks.check("the camera of a computer takes a photo", async () => {
    await page.click('[aria-label="Attach"]');
    await page.click(".attach-menu >> text=Take a photo");
    await page.click("dialog >> button.primary:not(:disabled)");
    await app.dialogClosed();
    await eventually(async () => assert(/^photo-\d{6}\.jpg$/.test((await drafted(page))[0] ?? ""), JSON.stringify(await drafted(page))));
    await isShown(page, ".composer .thumbnail img");
    await page.click('[aria-label^="Remove photo"]');
  });
  return app;
}

/** With the demo model: it sees and hears. */
export async function sending(checks, app) {
  const { page } = app;

  await checks.check("the first page asks about an image by one press, and the demo model answers rightly, without thinking", async () => {
    await page.click('.composer-below [data-setting="think"][aria-pressed="false"]');
    await page.click(".sidebar >> text=New chat");
    await page.click(".example >> text=How many things");
    await page.waitForSelector(".message.assistant");
    await app.answered();
    const [question, answer] = await app.messages();
    equal([question.text, answer.state], ["How many things are shown here?", "complete"], "messages");
    assert(/four/i.test(answer.text), answer.text);
    assert(!(await page.locator(".thought").isVisible()), "it thought");
    await page.click('.composer-below [data-setting="think"][aria-pressed="true"]');
    await isShown(page, ".message .thumbnail img");
  });

  await checks.check("an image opens larger, and Esc closes it", async () => {
    await page.click(".message .thumbnail");
    await isShown(page, "dialog .large-image");
    await app.leaveDialog();
    equal(await page.evaluate(() => document.activeElement.className), "thumbnail", "focus");
  });

  await checks.check("an edited question keeps its image, and so does another answer", async () => {
    await page.hover(".message.user");
    await page.click('.message.user [aria-label="Edit"]');
    await page.waitForSelector(".edit-form .thumbnail");
    await page.fill(".edit-input", "What is shown here?");
    await page.press(".edit-input", "Enter");
    await page.waitForFunction(() => document.querySelector(".message.user .content")?.textContent === "What is shown here?");
    await app.answered();
    await isShown(page, ".message .thumbnail img");
    equal([(await app.messages()).at(-1).state, await page.evaluate(stored)], ["complete", 1], "one image in both versions");
  });

  await checks.check("a sound is heard, and the meter counts it while it waits to be sent", async () => {
    await page.click(".sidebar >> text=New chat");
    await choose(page, "Sounds", demoFile(SOUND));
    await awaitDraft(page, [SOUND]);
    // 45 tokens for 1.8 seconds, and two that mark them.
    await page.waitForFunction(() => document.querySelector(".meter-text")?.textContent === "about 47 of 1,024 tokens");
    await app.ask("Write down what you hear in this audio.");
    const answer = (await app.messages()).at(-1);
    assert(/cat zero/i.test(answer.text), answer.text);
    await page.waitForSelector(".message .player");
    await app.shot("media-message");
  });

  await checks.check("labels, contrast and width with images and sounds, wide and on a phone", async () => {
    await choose(page, "Images", demoFile(PICTURE));
    await choose(page, "Sounds", demoFile(SOUND));
    await awaitDraft(page, [PICTURE, SOUND]);
    for (const [size, viewport] of [["wide", WIDE], ["phone", PHONE]]) {
      await page.setViewport(viewport);
      await settled(page);
      await app.shot(`view-media-${size}`);
      equal(await faultsOf(page), [], `faults, ${size}`);
    }
    await page.setViewport(WIDE);
    await page.click(`[aria-label="Remove ${PICTURE}"]`);
    await page.click(`[aria-label="Remove ${SOUND}"]`);
  });

  await checks.check("the settings have the image detail", async () => {
    await page.click('[aria-label="Settings"]');
    equal(await page.$$eval('[data-setting="imageBudget"] option', (all) => all.map(({ value }) => value)), ["70", "140", "280", "560", "1120"], "choices");
    await page.select('[data-setting="imageBudget"]', "70");
    await app.leaveDialog();
    equal(await page.evaluate(() => JSON.parse(localStorage.getItem("rullama.settings")).imageBudget), 70, "kept");
  });

  await checks.check("an export has them, a deleted chat frees them, and an import brings them back", async () => {
    const exported = await page.download('[aria-label="Export all chats"]');
    const file = JSON.parse(exported);
    equal([file.version, Object.keys(file.attachments).length], [2, 2], "file");
    while ((await page.locator(".conversation").count()) > 0) {
      const { length } = await page.$$eval(".conversation", (all) => all.map(() => 1));
      await page.hover(".conversation");
      await page.click(".conversation .menu > summary");
      await page.click(".menu-items >> text=Delete");
      await page.click("dialog >> text=Delete >> nth=-1");
      await app.dialogClosed();
      await page.waitForFunction((count) => document.querySelectorAll(".conversation").length < count, length);
    }
    await eventually(async () => equal(await page.evaluate(stored), 0, "freed"));
    await page.chooseFile('[aria-label="Import chats"]', { name: "conversations.json", content: exported });
    await page.waitForSelector(".conversation-title >> text=Write down");
    await page.fill('.sidebar input[type="search"]', "shapes.png");
    await page.click(".conversation > a");
    await isShown(page, ".message .thumbnail img");
    await page.fill('.sidebar input[type="search"]', "");
    equal(await page.evaluate(stored), 2, "stored again");
  });
}

/** With a model that reads text only loaded. */
export async function textOnly(checks, app) {
  const { page } = app;
  await checks.check("a model that reads text only says so when an image is dropped, and nothing is lost", async () => {
    await app.go("#/");
    await page.fill(".composer-input", "What is this?");
    await page.evaluate(bring, { how: "drop", files: [await fileOf(PICTURE, "image/png")] });
    await page.waitForSelector(".notice >> text=reads text only");
    await page.click('.notice [aria-label="Dismiss"]');
    equal([await page.inputValue(".composer-input"), await drafted(page)], ["What is this?", []], "draft");
    await page.fill(".composer-input", "");
  });

  await checks.check("its buttons say why they do nothing", async () => {
    equal(await page.locator('[aria-label="Record a sound"]').count(), 0, "a button to record");
    await page.click('[aria-label="Attach"]');
    await page.waitForSelector(".menu-note >> text=reads text only");
    equal(await page.$$eval(".attach-menu button", (all) => all.map(({ disabled }) => disabled)), [true, true, true], "disabled");
    await page.keyboard.press("Escape");
    await page.click('[aria-label="Settings"]');
    await page.waitForSelector('[data-setting="backend"]');
    equal(await page.locator('[data-setting="imageBudget"]').count(), 0, "image detail");
    await app.leaveDialog();
  });
}
