// The store's checks in Firefox, on a profile on disk, so that it can be restarted.

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { start } from "../../../../../xtask/browser/browsers.mjs";
import { runChecks } from "./checks.mjs";

const profile = await mkdtemp(join(tmpdir(), "rullama-store-"));
const launch = async () => (await start("firefox", profile)).browser;

let browser = await launch();
const failed = await runChecks({
  name: "Firefox",
  tab: () => browser.newPage(),
  async closeTabs() {
    for (const page of (await browser.pages()).slice(1)) await page.close();
  },
  async restart() {
    await browser.close();
    browser = await launch();
  },
  limitRoom: async () => false,
  stop: () => browser.close(),
});
await rm(profile, { recursive: true, force: true });
process.exit(failed === 0 ? 0 : 1);
