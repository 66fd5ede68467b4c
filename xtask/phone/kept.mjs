// Sessions that outlive the walk, one small file for each driver: starting Safari on a phone again takes a minute, and the model
// would have to be read again by a new browser.

import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";

/** Where the session of a driver is remembered. @param {string} driver */
export function keptFile(driver) {
  const name = driver.replace(/^https?:\/\//, "").replace(/[^\w.-]+/g, "-").replace(/-+$/, "");
  return fileURLToPath(new URL(`../../target/phone/${name}.json`, import.meta.url));
}

/** @param {string} driver @returns {{ id: string, capabilities: Record<string, unknown> } | undefined} */
export function readKept(driver) {
  try {
    const { id, capabilities } = JSON.parse(readFileSync(keptFile(driver), "utf8"));
    return typeof id === "string" ? { id, capabilities: capabilities ?? {} } : undefined;
  } catch {
    // None was kept, or half a file was written: a new one is as good.
    return undefined;
  }
}

/** @param {string} driver @param {import("./webdriver.mjs").Session} session */
export function keep(driver, { id, capabilities }) {
  const { browserName, browserVersion, platformName } = capabilities;
  mkdirSync(dirname(keptFile(driver)), { recursive: true });
  writeFileSync(keptFile(driver), `${JSON.stringify({ id, capabilities: { browserName, browserVersion, platformName } })}\n`);
}

/** @param {string} driver */
export function forget(driver) {
  rmSync(keptFile(driver), { force: true });
}
