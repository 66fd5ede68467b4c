// The store's checks in Chromium, on a profile on disk, so that it can be restarted.
// `CHROMIUM` names the browser's program where it is not in its usual place.

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chromium } from "playwright-core";
import { runChecks } from "./checks.mjs";

const profile = await mkdtemp(join(tmpdir(), "rullama-store-"));
const launch = () => chromium.launchPersistentContext(profile, {
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  headless: false, // the flag below is the newer headless mode, which is the whole browser
  args: [
    "--headless=new", "--no-sandbox", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-quic",
  ],
});

let context = await launch();
const failed = await runChecks({
  name: "Chromium",
  tab: () => context.newPage(),
  async closeTabs() {
    for (const page of context.pages().slice(1)) await page.close();
  },
  async restart() {
    await context.close();
    context = await launch();
  },
  async limitRoom(page, origin, quotaSize) {
    const session = await context.newCDPSession(page);
    await session.send("Storage.overrideQuotaForOrigin", quotaSize === undefined ? { origin } : { origin, quotaSize });
    // The override lasts as long as the session.
    return session;
  },
  stop: () => context.close(),
});
await rm(profile, { recursive: true, force: true });
process.exit(failed === 0 ? 0 : 1);
