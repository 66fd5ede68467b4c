// In a Firefox as people have it: a model is loaded by its address, stored, and answers.

import { PATIENCE } from "./app.mjs";
import { startFirefox } from "./browsers.mjs";
import { assert, equal } from "./checks.mjs";

export async function firefox(checks, origin) {
  let browser;
  await checks.check("Firefox starts", async () => {
    browser = await startFirefox();
  });
  if (!browser) {
    return;
  }
  const page = await browser.newPage();
  const troubles = [];
  page.on("pageerror", (error) => troubles.push(error.message));
  await checks.check("Firefox: a model is loaded by its address and stored", async () => {
    await page.goto(`${origin}/#/models`);
    await page.evaluate(() => localStorage.setItem("rullama.settings", JSON.stringify({ context: 512, maxTokens: 8, seed: 7, think: false })));
    await page.reload();
    await page.waitForSelector('input[type="url"]');
    await page.type('input[type="url"]', `${origin}/models/micro-e2b-Q8_0.gguf`);
    await page.click('form button[type="submit"]');
    await page.waitForSelector('[data-state="ready"] .model-chip, .error-box', { timeout: PATIENCE });
    const problem = await page.evaluate(() => document.querySelector(".error-box")?.textContent);
    assert(!problem, problem);
  });
  await checks.check("Firefox: the model answers", async () => {
    await page.waitForSelector(".composer-input");
    await page.type(".composer-input", "Hello");
    await page.keyboard.press("Enter");
    await page.waitForSelector('.message.assistant:not([data-state="writing"])', { timeout: PATIENCE });
    const [state, text] = await page.evaluate(() => {
      const message = document.querySelector(".message.assistant");
      return [message.dataset.state, message.textContent];
    });
    equal(state, "complete", `state of "${text}"`);
    equal(troubles, [], "troubles");
  });
  await browser.close();
}
