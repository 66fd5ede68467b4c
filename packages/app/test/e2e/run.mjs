// The built app in real browsers, served by `rullama serve`: `npm run e2e`, or `node test/e2e/run.mjs chromium` or `firefox` for
// one of them. `--server PROGRAM` names the program; otherwise it is the one that cargo has built for this repository.
//
// Models are loaded as seldom as possible, because kernels take long to make in software: most checks share one tab.

import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { start } from "../../../../xtask/browser/browsers.mjs";
import { everyView, keyboard, touch } from "./access.mjs";
import { App } from "./app.mjs";
import { chatting, conversations, transfer } from "./chat.mjs";
import { Checks } from "./checks.mjs";
import { demoInterrupted, demoWithoutStore, firstStart, firstStartAgain } from "./demo.mjs";
import { device } from "./device.mjs";
import { FirefoxBrowser } from "./firefox-page.mjs";
import { markdown } from "./markdown.mjs";
import { byAddress, byFile, equalTroubles, fromServer, pulledAnew, reports, saved, tooLarge } from "./models.mjs";
import { holdWorker, lostDevice, lostProcess, newVersion, offline, silentServer, withoutWebGpu } from "./offline.mjs";
import { PROGRAM, serveRullama } from "./rullama.mjs";
import { serve } from "./server.mjs";

const MINUTES = 60;
const { values, positionals } = parseArgs({ options: { server: { type: "string" } }, allowPositionals: true });
const [wanted] = positionals;
setTimeout(() => {
  console.error(`not done after ${MINUTES} minutes`);
  process.exit(1);
}, MINUTES * 60_000).unref();

if (!existsSync(fileURLToPath(new URL("../../dist/index.html", import.meta.url)))) {
  console.error("the app is not built: npm run build");
  process.exit(2);
}

const checks = new Checks();
// An ordinary server, with moods; and ours. Neither is done without.
const server = await serve();
const rullama = await serveRullama(values.server === undefined ? PROGRAM : resolve(values.server));
for (const [name, walk] of [["chromium", inChromium], ["firefox", inFirefox]]) {
  if (wanted === undefined || wanted === name) {
    await checks.inBrowser(name, walk);
  }
}
server.close();
await rullama.close();
process.exit(checks.finish());

async function inChromium() {
  const { browser } = await start("chromium");
  await withoutWebGpu(checks, browser, rullama.origin);
  const first = await firstStart(checks, browser, rullama.origin);
  await firstStartAgain(checks, first);
  await equalTroubles(checks, first, "at first start");
  await first.close();
  await demoWithoutStore(checks, browser, server);
  await demoInterrupted(checks, browser, server);
  const app = await App.open(browser, rullama.origin, { before: holdWorker });
  await fromServer(checks, app);
  await chatting(checks, app);
  await conversations(checks, app);
  await transfer(checks, app);
  await offline(checks, app);
  await markdown(checks, app);
  await everyView(checks, app);
  await keyboard(checks, app);
  await equalTroubles(checks, app, "in the main tab");
  await lostProcess(checks, app, browser);
  await lostDevice(checks, app);
  await checks.check("the model is there for the benchmark", () => app.ready());
  await device(checks, app, rullama);
  await app.close();
  await pulledAnew(checks, browser, rullama);
  await reports(checks, browser, rullama);
  await tooLarge(checks, browser, rullama.origin);
  await byFile(checks, browser, rullama.origin);
  await touch(checks, browser, rullama.origin);
  await silentServer(checks, browser, server);
  await newVersion(checks, browser, server);
  const ordinary = await App.open(browser, server.origin);
  await byAddress(checks, ordinary, server);
  await saved(checks, ordinary);
  await equalTroubles(checks, ordinary, "at an ordinary server");
  await ordinary.close();
  await browser.close();
}

/** The same walk. Left out is what needs Playwright's hands: files, a network that is cut, a GPU process that dies. */
async function inFirefox() {
  const { browser: started } = await start("firefox");
  const browser = new FirefoxBrowser(started);
  await withoutWebGpu(checks, browser, rullama.origin);
  const first = await firstStart(checks, browser, rullama.origin);
  await equalTroubles(checks, first, "at first start");
  await first.close();
  await demoInterrupted(checks, browser, server);
  const app = await App.open(browser, rullama.origin, { before: holdWorker });
  await fromServer(checks, app);
  await chatting(checks, app);
  await conversations(checks, app);
  await equalTroubles(checks, app, "in the main tab");
  await lostDevice(checks, app);
  await app.close();
  const ordinary = await App.open(browser, server.origin);
  await byAddress(checks, ordinary, server);
  await equalTroubles(checks, ordinary, "at an ordinary server");
  await ordinary.close();
  await browser.close();
}
