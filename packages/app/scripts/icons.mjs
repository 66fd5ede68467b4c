// Draws the PNG icons from public/icons/icon.svg with Chromium: `npm run icons`. Their results are kept in the repository,
// because installing an app must not need this.

import { readFile, writeFile } from "node:fs/promises";
import { start } from "../../../xtask/browser/browsers.mjs";

const folder = new URL("../public/icons/", import.meta.url);
const svg = await readFile(new URL("icon.svg", folder), "utf8");
// Systems cut maskable icons to a shape of theirs: the ground reaches the edges, the sign stays in the middle.
const maskable = svg
  .replace(/rx="\d+"/, "")
  .replace(/(<rect[^>]*>)/, '$1<g transform="translate(64 64) scale(0.75)">')
  .replace("</svg>", "</g></svg>");

const browser = await start("chromium");
for (const [name, size, picture] of [
  ["icon-192.png", 192, svg],
  ["icon-512.png", 512, svg],
  ["icon-maskable-512.png", 512, maskable],
]) {
  const context = await browser.newContext({ viewport: { width: size, height: size } });
  const page = await context.newPage();
  await page.raw.setContent(`<style>body{margin:0}svg{display:block;width:${size}px;height:${size}px}</style>${picture}`);
  await writeFile(new URL(name, folder), await page.screenshot({ omitBackground: true }));
  console.log(name);
}
await browser.close();
