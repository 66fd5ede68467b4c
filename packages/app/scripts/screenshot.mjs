// Makes docs/images/chat.png, the picture in README.md: a chat with the demo model, in Firefox.
//
//   cargo build --package rullama && npm run build --prefix packages/app && npm run picture --prefix packages/app

import { mkdir } from "node:fs/promises";
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import { start } from "../../../xtask/browser/browsers.mjs";
import { App } from "../test/e2e/app.mjs";
import { PROGRAM, serveRullama } from "../test/e2e/rullama.mjs";

const PICTURE = fileURLToPath(new URL("../../../docs/images/chat.png", import.meta.url));
const CHATS = [["What is 7 + 5?"], ["Does rullama need a server?"], ["What is rullama?", "Which models can it run?", "How do I load a model of my own?"]];

const rullama = await serveRullama(PROGRAM);
const browser = await start("firefox");
try {
  const app = await App.open(browser, rullama.origin, { settings: { context: 4096, think: false, seed: 7 }, viewport: { width: 1280, height: 800 } });
  for (const questions of CHATS) {
    await app.go("#/");
    for (const question of questions) {
      await app.ask(question);
    }
  }
  await mkdir(dirname(PICTURE), { recursive: true });
  await app.page.screenshot({ path: PICTURE });
} finally {
  await browser.close();
  await rullama.close();
}
