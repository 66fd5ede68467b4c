// A chat: keyboard, streaming, stop, queue, other answers, branches, saved chats, export and import.

import { readFile } from "node:fs/promises";
import { assert, equal, eventually } from "../../../../xtask/browser/assert.mjs";

/** In the page: notes from now on what a screen reader would say. */
function listen() {
  globalThis.heard = [];
  const note = (changes) => {
    for (const { target } of changes) {
      globalThis.heard.push(target.textContent);
    }
  };
  new MutationObserver(note).observe(document.getElementById("voice"), { childList: true, characterData: true });
}

/** In the page: sends a message without the focus in the field. */
function typeAndSend(text) {
  const input = document.querySelector(".composer-input");
  input.value = text;
  input.dispatchEvent(new InputEvent("input", { bubbles: true }));
  input.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", bubbles: true, cancelable: true }));
}

/** In the page: when the next reply has begun, sends two messages and removes the first of them; notes what the page shows then. */
function queueInTheMiddle() {
  globalThis.queued = [];
  const note = () => {
    const rows = [...document.querySelectorAll(".queue li")].map((row) => `${row.querySelector(".queue-label").textContent}: ${row.querySelector(".queue-text").textContent}`);
    globalThis.queued.push([...document.querySelectorAll(".message")].at(-1).dataset.state, ...rows);
  };
  const rendered = () => new Promise((resolve) => queueMicrotask(() => queueMicrotask(() => queueMicrotask(resolve))));
  globalThis.inTheMiddle = async () => {
    globalThis.typeAndSend("Not this");
    globalThis.typeAndSend("Sent later");
    await rendered();
    note();
    document.querySelector('[aria-label="Remove the queued message"]').click();
    await rendered();
    note();
  };
  globalThis.inTheMiddle.after = 1;
}

/** In the page: presses Esc when the next reply has begun. The reply could be over before a key from outside the page arrives. */
function pressEscInTheMiddle() {
  globalThis.inTheMiddle = () => {
    globalThis.couldStop = document.querySelector('[aria-label="Stop"]')?.checkVisibility() ?? false;
    document.activeElement.dispatchEvent(new KeyboardEvent("keydown", { key: "Escape", bubbles: true, cancelable: true }));
  };
}

/** In the page: the last answer as the model wrote it. */
function lastAnswer() {
  const id = location.hash.split("/").at(-1);
  return new Promise((resolve, reject) => {
    const opening = indexedDB.open("rullama");
    opening.onerror = () => reject(opening.error);
    opening.onsuccess = () => {
      const reading = opening.result.transaction("conversations").objectStore("conversations").get(id);
      reading.onsuccess = () => {
        opening.result.close();
        resolve(reading.result.messages.filter(({ role }) => role === "assistant").at(-1).content);
      };
    };
  });
}

/** In the page: whether the chat that is shown is called this. */
function isCalled(title) {
  return document.querySelector(".header-title")?.textContent === title;
}

/** Renames the first conversation, and waits until the list has it so. */
async function rename(page, title) {
  await page.hover(".conversation");
  await page.click(".conversation .menu > summary");
  await page.click(".menu-items >> text=Rename");
  await page.fill("dialog input", title);
  await page.keyboard.press("Enter");
  await page.waitForSelector("dialog", { state: "detached" });
  await page.waitForFunction((wanted) => document.querySelector(".conversation-title")?.textContent === wanted, title);
}

/** Switches to another version of a message, and waits until it is shown. */
async function turnPage(page, message, button, place) {
  await page.hover(message);
  await page.click(`${message} [aria-label="${button}"]`);
  await page.waitForFunction(([one, wanted]) => document.querySelector(`${one} .switch-place`)?.textContent === wanted, [message, place]);
}

export async function chatting(checks, app) {
  const { page } = app;

  await checks.check("Enter sends, Shift+Enter does not, and the answer comes with its speed", async () => {
    await app.go("#/");
    await page.focus(".composer-input");
    await page.keyboard.type("First line");
    await page.keyboard.press("Shift+Enter");
    await page.keyboard.type("second line");
    await page.keyboard.press("Enter");
    await page.waitForSelector(".message.assistant");
    await app.answered();
    const [question, answer] = await app.messages();
    equal(question.text, "First line\nsecond line", "question");
    equal(answer.state, "complete", "state");
    assert(answer.text.length > 0, "no answer");
    const facts = await page.locator(".message.assistant .facts").innerText();
    assert(/gemma4:micro · 1[56] tokens · [\d.]+ tokens\/s · Time to first token/.test(facts), facts);
    assert(/^\d+ of 512 tokens$/.test(await page.locator(".meter-text").innerText()), "no meter");
    equal(await page.locator(".header-title").innerText(), "First line", "title");
    assert((await page.evaluate(() => location.hash)).startsWith("#/chat/"), "address");
  });

  await checks.check("a copied answer is confirmed, and an answer that was cut off goes on where it ended", async () => {
    await Promise.all([page.waitForSelector('.message.assistant [aria-label="Copied"]'), page.click('.message.assistant [aria-label="Copy"]')]);
    const [, before] = await app.messages();
    assert((await page.locator(".message.assistant .facts").innerText()).startsWith("Cut off at the limit"), "not said to be cut off");
    await page.click(".message.assistant >> text=Continue");
    // The answer is written in place, and is longer afterwards.
    const isLonger = (length) => document.querySelector('.message.assistant[data-state="complete"] .content')?.textContent.length > length;
    await page.waitForFunction(isLonger, before.text.length, { timeout: app.patience });
    const [, after] = await app.messages();
    assert(after.text.startsWith(before.text), `“${after.text}” does not begin with “${before.text}”`);
    equal([(await app.messages()).length, after.place], [2, undefined], "messages");
  });

  await checks.check("another answer stands beside the first, and one can switch", async () => {
    await app.setMaximum(12);
    await page.click('[aria-label="Write another answer"]');
    // It stands there only when the answer is over.
    const isSecond = () => document.querySelector(".message.assistant .switch-place")?.textContent === "2/2";
    await page.waitForFunction(isSecond, undefined, { timeout: app.patience });
    const second = (await app.messages())[1];
    await turnPage(page, ".message.assistant", "Previous version", "1/2");
    const first = (await app.messages())[1];
    equal([first.state, second.state], ["complete", "complete"], "states");
    await turnPage(page, ".message.assistant", "Next version", "2/2");
    equal((await app.messages())[1], second, "second answer");
  });

  await checks.check("an edited question makes a branch; the old one stays", async () => {
    await page.hover(".message.user");
    await page.click('.message.user [aria-label="Edit"]');
    await page.fill(".edit-input", "Another question");
    await app.shot("chat-edit");
    await page.press(".edit-input", "Enter");
    await page.waitForFunction(() => document.querySelector(".message.user .content")?.textContent === "Another question");
    await app.answered();
    const shown = await app.messages();
    equal([shown.length, shown[0].place], [2, "2/2"], "branch");
    await turnPage(page, ".message.user", "Previous version", "1/2");
    const old = await app.messages();
    equal([old[0].text, old[0].place, old[1].place], ["First line\nsecond line", "1/2", "2/2"], "old branch");
    await app.shot("chat-branches");
  });

  await checks.check("Esc stops an answer; what was said stays, and the next one works", async () => {
    await app.setMaximum(400);
    await page.evaluate(pressEscInTheMiddle);
    await app.send("Tell me a long story");
    await app.answered();
    equal(await page.evaluate(() => globalThis.couldStop), true, "a button to stop");
    const last = (await app.messages()).at(-1);
    equal(last.state, "stopped", "state");
    assert(last.text.length > 5, "what was said is gone");
    assert((await page.locator(".message:last-child .facts").innerText()).startsWith("Stopped"), "not said to be stopped");
    await app.setMaximum(8);
    await page.evaluate(listen);
    await app.ask("And now?");
    equal((await app.messages()).at(-1).state, "complete", "state after a stop");
  });

  await checks.check("screen readers hear the whole answer once", async () => {
    equal(await page.locator("#voice").getAttribute("aria-live"), "polite", "voice");
    const said = await page.evaluate(lastAnswer);
    assert(said.length > 0, "nothing was said");
    await eventually(async () => equal(await page.evaluate(() => globalThis.heard), ["The model is writing", said], "what was heard"));
    equal(await page.locator(".messages").getAttribute("aria-live"), "off", "messages");
  });

  await checks.check("Enter during a reply queues the message; the reply goes on, and the message is sent after it", async () => {
    const { length } = await app.messages();
    await page.evaluate(`globalThis.typeAndSend = ${typeAndSend}; (${queueInTheMiddle})()`);
    await app.send("Go on for a while");
    await page.waitForFunction((count) => document.querySelectorAll(".message").length === count, length + 4, { timeout: app.patience });
    await app.answered();
    equal(await page.evaluate(() => globalThis.queued), ["writing", "Queued: Not this", "Queued: Sent later", "writing", "Queued: Sent later"], "while it was written");
    equal((await app.messages()).slice(length).map(({ state }) => state), ["complete", "complete", "complete", "complete"], "states");
    equal([(await app.messages()).at(-2).text, await page.locator(".queue").count()], ["Sent later", 0], "what was queued");
  });

  await checks.check("buttons, focus and the selected text stay while an answer is written", async () => {
    await page.evaluate(() => void (globalThis.copies = [...document.querySelectorAll('.message [aria-label="Copy"]')]));
    assert(await page.evaluate(() => globalThis.copies.length > 0), "no buttons");
    const { length } = await app.messages();
    // A field with the focus would have the selection.
    await page.evaluate(() => {
      document.activeElement.blur();
      getSelection().selectAllChildren(document.querySelector(".message.user .content"));
    });
    await page.evaluate(typeAndSend, "And then?");
    await page.waitForFunction((count) => document.querySelectorAll(".message").length === count, length + 2);
    await app.answered();
    equal(await page.evaluate(() => globalThis.copies.filter(({ isConnected }) => !isConnected).length), 0, "buttons made anew");
    equal(await page.evaluate(() => String(getSelection())), "First line\nsecond line", "selection");
  });

  await checks.check("the meter counts what is being typed, and settings say what they correct", async () => {
    const meter = () => page.locator(".meter-text").innerText();
    // After an answer the engine counts once more, which may come in between.
    await eventually(async () => {
      await page.fill(".composer-input", "");
      const before = await meter();
      await page.fill(".composer-input", "word ".repeat(400));
      equal(await meter(), `about ${(Number(before.split(" ")[0]) + 500).toLocaleString("en")} of 512 tokens`, "meter");
      await page.fill(".composer-input", "");
      equal(await meter(), before, "meter without a draft");
    });
    await page.click('[aria-label="Settings"]');
    const set = async (name, typed) => {
      await page.fill(`[data-setting="${name}"]`, typed);
      await page.press(`[data-setting="${name}"]`, "Tab");
      return page.inputValue(`[data-setting="${name}"]`);
    };
    equal([await set("maxTokens", "0"), await set("seed", "-1"), await set("temperature", "9")], ["", "", "2"], "values");
    equal(await page.locator(".correction:not(:empty)").allInnerTexts(), ["Must be from 0 to 2."], "corrections");
    equal([await set("maxTokens", "8"), await set("seed", "7"), await set("temperature", "1")], ["8", "7", "1"], "values");
    // Scrolled to its end, the panel can still be closed.
    await page.locator("dialog >> text=Reset to defaults").scrollIntoView();
    assert(await page.evaluate(() => document.querySelector(".dialog-close").getBoundingClientRect().top >= 0), "the way out is gone");
    await page.click('dialog [aria-label="Close"]');
    await app.dialogClosed();
  });

  await checks.check("a system prompt belongs to its conversation", async () => {
    await page.click('[aria-label="Settings"]');
    await page.fill("dialog textarea", "Answer in verse.");
    await page.press("dialog textarea", "Tab");
    await app.shot("settings");
    await app.leaveDialog();
    await page.click('[aria-label="Settings"]');
    equal(await page.inputValue("dialog textarea"), "Answer in verse.", "prompt");
    await app.leaveDialog();
    await page.click(".sidebar >> text=New chat");
    await page.click('[aria-label="Settings"]');
    equal(await page.inputValue("dialog textarea"), "", "prompt of a new one");
    await app.leaveDialog();
  });
}

export async function conversations(checks, app) {
  const { page } = app;
  await checks.check("two tabs that write one conversation lose nothing of each other", async () => {
    await page.click(".conversation > a");
    await page.waitForSelector(".message");
    // Long enough to be still writing when the other tab has renamed it.
    await app.setMaximum(app.browser.name === "chromium" ? 80 : 200);
    await app.begin("While somebody else is here");
    await app.shot("chat-writing");
    const other = await app.context.newPage();
    await other.goto(page.url());
    await other.waitForSelector(".conversation");
    await rename(other, "Renamed meanwhile");
    await app.answered();
    await page.waitForFunction(isCalled, "Renamed meanwhile");
    const said = await app.messages();
    equal(said.at(-1).state, "complete", "state");
    await other.reload();
    await other.waitForSelector(".message");
    const heard = await other.$$eval(".message .content", (all) => all.map(({ textContent }) => textContent));
    equal(heard, said.map(({ text }) => text), "in the other tab");
    equal(await other.locator(".header-title").innerText(), "Renamed meanwhile", "title");
    await other.close();
    await app.setMaximum(8);
  });

  await checks.check("a conversation is renamed, found by what was said in it, and opened by Ctrl+K", async () => {
    await rename(page, "Renamed");
    await page.fill('.sidebar input[type="search"]', "long story");
    await page.waitForSelector(".excerpt >> text=long story");
    await page.fill('.sidebar input[type="search"]', "no such thing");
    await page.waitForSelector("text=No chats found");
    await page.fill('.sidebar input[type="search"]', "");
    await page.click(".sidebar >> text=New chat");
    await page.waitForFunction(isCalled, "");
    await page.keyboard.press("Control+k");
    await page.waitForSelector("dialog.switcher");
    await page.keyboard.type("renam");
    await app.shot("switcher");
    await page.keyboard.press("Enter");
    await page.waitForFunction(isCalled, "Renamed");
    await page.waitForSelector("dialog.switcher", { state: "detached" });
  });

  await checks.check("Ctrl+K and Enter begin a new chat", async () => {
    const hash = await page.evaluate(() => location.hash);
    await page.keyboard.press("Control+k");
    await page.waitForSelector("dialog.switcher");
    await page.keyboard.press("Enter");
    await page.waitForFunction(() => location.hash === "#/");
    await page.waitForSelector("dialog.switcher", { state: "detached" });
    equal(await app.messages(), [], "messages");
    await app.go(hash);
    await page.waitForFunction(isCalled, "Renamed");
  });

  await checks.check("Ctrl+K is heard while the last one is still closing", async () => {
    await page.evaluate(() => {
      const press = (target, key, ctrlKey) => target.dispatchEvent(new KeyboardEvent("keydown", { key, ctrlKey, bubbles: true }));
      press(document.body, "k", true);
      press(document.querySelector("dialog.switcher input"), "Enter", false);
      press(document.body, "k", true);
    });
    await page.waitForFunction(() => location.hash === "#/");
    equal(await page.locator("dialog.switcher[open]").count(), 1, "open switchers");
    await page.keyboard.type("renam");
    await page.keyboard.press("Enter");
    await page.waitForFunction(isCalled, "Renamed");
    await page.waitForSelector("dialog.switcher", { state: "detached" });
  });

  await checks.check("whoever goes on elsewhere while a dialog closes stays there", async () => {
    await page.click('[aria-label="Settings"]');
    await page.evaluate(() => {
      document.querySelector("dialog").close();
      document.querySelector('.sidebar input[type="search"]').focus();
    });
    await app.dialogClosed();
    equal(await page.evaluate(() => document.activeElement.getAttribute("aria-label")), "Search chats", "focus");
  });

  await checks.check("a reload keeps chats, branches and drafts", async () => {
    const before = await app.messages();
    await page.fill(".composer-input", "Not sent yet");
    await page.reload();
    await page.waitForSelector(".message");
    equal(await app.messages(), before, "messages");
    // A draft belongs to its chat.
    const draft = () => page.inputValue(".composer-input");
    const { hash } = new URL(page.url());
    const drafts = [await draft()];
    await app.go("#/");
    await page.waitForFunction(isCalled, "");
    drafts.push(await draft());
    await app.go(hash);
    await page.waitForSelector(".message");
    drafts.push(await draft());
    equal(drafts, ["Not sent yet", "", "Not sent yet"], "drafts");
    await page.fill(".composer-input", "");
    equal(await page.locator(".header-title").innerText(), "Renamed", "title");
  });

  await checks.check("another tab shows the same conversations, and follows changes", async () => {
    const other = await app.context.newPage();
    await other.goto(page.url());
    await other.waitForSelector(".message");
    equal(await other.locator(".header-title").innerText(), "Renamed", "title in the other tab");
    await rename(other, "Renamed elsewhere");
    await page.waitForFunction(isCalled, "Renamed elsewhere");
    await rename(page, "Renamed");
    await other.waitForFunction(isCalled, "Renamed");
    await other.close();
  });

  await checks.check("a conversation that cannot be saved is told until it can be", async () => {
    await page.evaluate(() => {
      const { put } = IDBObjectStore.prototype;
      IDBObjectStore.prototype.put = () => {
        throw new DOMException("no room", "QuotaExceededError");
      };
      globalThis.mend = () => (IDBObjectStore.prototype.put = put);
    });
    await rename(page, "Not kept");
    await page.waitForSelector(".notice >> text=Not saved: the browser's storage is full");
    await app.shot("chat-unsaved");
    await page.evaluate(() => void globalThis.mend());
    await rename(page, "Renamed");
    await page.waitForFunction(() => ![...document.querySelectorAll(".notice")].some(({ textContent }) => textContent.includes("Not saved")));
    await page.reload();
    await page.waitForSelector(".conversation-title >> text=Renamed");
    equal(await page.locator(".conversation-title").innerText(), "Renamed", "title");
  });
}

/** Files out and in. */
export async function transfer(checks, app) {
  const { page } = app;
  let exported;
  await checks.check("export and import bring everything back", async () => {
    exported = await page.download('[aria-label="Export all chats"]');
    const file = JSON.parse(exported);
    equal([file.format, file.version, file.conversations.length], ["rullama-conversations", 1, 1], "file");
    await page.hover(".conversation");
    await page.click(".conversation .menu > summary");
    const text = String(await page.download(".menu-items >> text=Export as Markdown"));
    assert(/^# Renamed\n\n\*\*System prompt\*\*\n\n> Answer in verse.\n\n## You\n\nFirst line\nsecond line\n\n## gemma4:micro\n/.test(text), text);
    await page.keyboard.press("Escape");
    await page.hover(".conversation");
    await page.click(".conversation .menu > summary");
    await page.click(".menu-items >> text=Delete");
    await page.click("dialog >> text=Delete >> nth=-1");
    await app.dialogClosed();
    await page.waitForSelector("text=Your chats will appear here");
    await page.chooseFile('[aria-label="Import chats"]', { name: "conversations.json", content: exported });
    await page.waitForSelector(".conversation-title >> text=Renamed");
    await page.click(".conversation > a");
    await page.waitForSelector(".message");
    const shown = await app.messages();
    assert(shown.length >= 4 && shown[0].place === "1/2", JSON.stringify(shown));
  });

  await checks.check("a file that is no export is refused in words", async () => {
    await page.chooseFile('[aria-label="Import chats"]', { name: "x.json", content: Buffer.from("{}") });
    await page.waitForSelector("text=isn't an export of chats");
  });
}
