// A model on the GPU, as the settings ask for it: the tests that need one. All others run on the CPU.

import { equal } from "../../../../xtask/browser/assert.mjs";

/** The model of the server is loaded. A reply; in Chromium, which alone lets its GPU process be ended from outside, one during that. */
export async function onGpu(checks, app) {
  const { page, browser } = app;
  await checks.check("the GPU computes where the settings say so, and the page tells it", async () => {
    await page.waitForSelector(".card.current .backend-line >> text=The GPU computes");
    await app.go("#/");
    await app.ask("Hello");
    equal((await app.messages()).at(-1).state, "complete", "state");
  });
  if (browser.name !== "chromium") {
    return;
  }
  await checks.check("when the browser's GPU process dies, the answer goes on", async () => {
    await page.click(".sidebar >> text=New chat");
    await app.setMaximum(24);
    const session = await browser.devtools();
    await app.begin("Go on");
    await session.send("Browser.crashGpuProcess");
    await app.answered();
    equal((await app.messages()).at(-1).state, "complete", "state");
    await app.setMaximum(8);
    await app.ask("Still there?");
    equal((await app.messages()).map(({ state }) => state), ["complete", "complete", "complete", "complete"], "states");
  });
}
