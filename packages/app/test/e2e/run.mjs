// The built app in real browsers: `npm run e2e`, or `node test/e2e/run.mjs chromium` or `firefox` for one of them.
//
// Models are loaded as seldom as possible, because kernels take long to make in software: most checks share one tab.

import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { everyView, keyboard } from "./access.mjs";
import { App } from "./app.mjs";
import { startChromium } from "./browsers.mjs";
import { chatting, conversations } from "./chat.mjs";
import { Checks } from "./checks.mjs";
import { device } from "./device.mjs";
import { firefox } from "./firefox.mjs";
import { markdown } from "./markdown.mjs";
import { byAddress, byFile, equalTroubles, fromServer, tooLarge } from "./models.mjs";
import { holdWorker, lostDevice, offline, withoutWebGpu } from "./offline.mjs";
import { serve } from "./server.mjs";

const MINUTES = 20;
const wanted = process.argv[2];
setTimeout(() => {
  console.error(`not done after ${MINUTES} minutes`);
  process.exit(1);
}, MINUTES * 60_000).unref();

if (!existsSync(fileURLToPath(new URL("../../dist/index.html", import.meta.url)))) {
  console.error("the app is not built: npm run build");
  process.exit(2);
}

const checks = new Checks();
const server = await serve();
if (wanted !== "firefox") {
  await inChromium();
}
if (wanted !== "chromium") {
  await firefox(checks, server.origin);
}
server.close();
process.exit(checks.finish());

async function inChromium() {
  const browser = await startChromium();
  await withoutWebGpu(checks, browser, server.origin);
  const app = await App.open(browser, server.origin, { before: holdWorker });
  await byAddress(checks, app, server);
  await chatting(checks, app);
  await conversations(checks, app);
  await offline(checks, app, server);
  await markdown(checks, app);
  await everyView(checks, app);
  await keyboard(checks, app);
  await equalTroubles(checks, app, "in the main tab");
  await lostDevice(checks, app, browser);
  await app.close();
  await tooLarge(checks, browser, server.origin);
  await byFile(checks, browser, server.origin);
  await fromServer(checks, browser, server);
  server.behaviour.api = true;
  const other = await App.open(browser, server.origin, { hash: "#/models" });
  await checks.check("a model for the benchmark is loaded", async () => {
    await other.page.click('button[title="Use micro:e2b"]');
    await other.ready();
  });
  await device(checks, other, server);
  await equalTroubles(checks, other, "on the Device page");
  await other.close();
  await browser.close();
}
