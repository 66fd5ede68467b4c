// The store's checks in Chromium, on a profile on disk, so that it can be restarted.

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { start } from "../../../../../xtask/browser/browsers.mjs";
import { runChecks } from "./checks.mjs";

const profile = await mkdtemp(join(tmpdir(), "rullama-store-"));
const launch = async () => (await start("chromium", profile)).browser;

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
