// Who cannot see, or use a mouse: names for everything, contrast, order by keyboard, narrow screens, no motion.

import { App, LANDSCAPE, PHONE, WIDE } from "./app.mjs";
import { assert, equal } from "../../../../xtask/browser/assert.mjs";

/** In the page: what a person who hears or squints would miss. */
function faults() {
  const found = [];
  const visible = (element) => element.checkVisibility({ checkOpacity: false, checkVisibilityCSS: true });
  const name = (element) =>
    element.getAttribute("aria-label") ||
    document.getElementById(element.getAttribute("aria-labelledby"))?.textContent ||
    (element.labels?.length ? [...element.labels].map((label) => label.textContent).join(" ") : "") ||
    element.textContent.trim() ||
    element.getAttribute("title") ||
    element.querySelector("img")?.alt;
  const say = (element) => element.outerHTML.slice(0, 120);

  for (const element of document.querySelectorAll("button, a[href], input, textarea, select, summary, [role=meter], dialog[open], progress")) {
    if (visible(element) && !name(element)) {
      found.push(`without a name: ${say(element)}`);
    }
  }
  for (const image of document.querySelectorAll("img")) {
    if (!image.hasAttribute("alt")) {
      found.push(`without alt: ${say(image)}`);
    }
  }
  const ids = [...document.querySelectorAll("[id]")].map(({ id }) => id);
  ids.filter((id, index) => ids.indexOf(id) !== index).forEach((id) => found.push(`id twice: ${id}`));
  for (const attribute of ["aria-controls", "aria-describedby", "aria-labelledby"]) {
    for (const element of document.querySelectorAll(`[${attribute}]`)) {
      if (!document.getElementById(element.getAttribute(attribute))) {
        found.push(`${attribute} leads nowhere: ${say(element)}`);
      }
    }
  }
  if (document.querySelectorAll("main").length !== 1 || !document.documentElement.lang) {
    found.push("no main, or no language");
  }

  // Contrast of text, as WCAG counts it.
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const parse = (colour) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
    return { r, g, b, a: a / 255 };
  };
  const over = (top, under) => ({
    r: top.r * top.a + under.r * (1 - top.a),
    g: top.g * top.a + under.g * (1 - top.a),
    b: top.b * top.a + under.b * (1 - top.a),
    a: 1,
  });
  const ground = (element) => {
    const layers = [];
    for (let at = element; at; at = at.parentElement) {
      layers.push(parse(getComputedStyle(at).backgroundColor));
      if (layers.at(-1).a === 1) {
        break;
      }
    }
    return layers.reverse().reduce((under, top) => over(top, under), { r: 255, g: 255, b: 255, a: 1 });
  };
  const light = ({ r, g, b }) => {
    const [x, y, z] = [r, g, b].map((value) => value / 255).map((value) => (value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4));
    return 0.2126 * x + 0.7152 * y + 0.0722 * z;
  };
  for (const element of document.querySelectorAll("body *")) {
    const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim() !== "");
    if (!own || !visible(element) || element.closest(":disabled, .visually-hidden, svg, noscript, .skip")) {
      continue;
    }
    const style = getComputedStyle(element);
    const under = ground(element);
    const [a, b] = [light(over(parse(style.color), under)), light(under)];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    const large = parseFloat(style.fontSize) >= 24 || (parseFloat(style.fontSize) >= 18.6 && Number(style.fontWeight) >= 700);
    if (ratio < (large ? 3 : 4.5)) {
      found.push(`contrast ${ratio.toFixed(2)}: ${say(element)}`);
    }
  }
  if (document.documentElement.scrollWidth > innerWidth) {
    found.push(`wider than the window: ${document.documentElement.scrollWidth}`);
  }
  // Only what is inside the frame scrolls.
  if (document.documentElement.scrollHeight > innerHeight) {
    found.push(`higher than the window: ${document.documentElement.scrollHeight}`);
  }
  return found;
}

/** What is wrong with what a page shows now; nothing, if all is well. */
export function faultsOf(page) {
  return page.evaluate(faults);
}

/** Waits until nothing moves or changes colour any more, but for what never ends. */
export function settled(page) {
  return page.evaluate(async () => {
    // Not by `finished`, which is never told of what was hidden before its end.
    const moves = ({ effect }) => effect.getComputedTiming().endTime !== Infinity && effect.target.checkVisibility();
    while (document.getAnimations().some(moves)) {
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  });
}

/** Every page in both colours and on a phone: a picture of each, and no faults in any. */
export async function everyView(checks, app) {
  const { page } = app;
  const chat = await page.evaluate(() => document.querySelector(".conversation > a")?.getAttribute("href"));
  assert(chat, "no conversation to look at");
  await page.evaluate(() => document.querySelectorAll('.notice [aria-label="Dismiss"]').forEach((button) => button.click()));
  // Each with what stands in it when all of it is there.
  const views = [
    ["chat", chat, ".message"],
    ["new", "#/", ".welcome h1"],
    ["models", "#/models", '[aria-label="Stored models"]'],
    ["device", "#/device", ".card"],
  ];
  for (const [size, viewport] of [["wide", WIDE], ["phone", PHONE], ["landscape", LANDSCAPE]]) {
    await page.setViewport(viewport);
    for (const colorScheme of ["light", "dark"]) {
      await page.emulateMedia({ "prefers-color-scheme": colorScheme });
      for (const [name, hash, last] of views) {
        await checks.check(`labels, contrast and width: ${name}, ${size}, ${colorScheme}`, async () => {
          await app.go(hash);
          await page.waitForSelector(last);
          await settled(page);
          await app.shot(`view-${name}-${size}-${colorScheme}`);
          equal(await page.evaluate(faults), [], "faults");
        });
      }
      await checks.check(`labels, contrast and width: settings, ${size}, ${colorScheme}`, async () => {
        await page.click('[aria-label="Settings"]');
        await settled(page);
        await app.shot(`view-settings-${size}-${colorScheme}`);
        equal(await page.evaluate(faults), [], "faults");
        await app.leaveDialog();
      });
    }
  }
  await checks.check("on a phone the list is a drawer that opens, closes with Esc and gives focus back", async () => {
    await page.setViewport(PHONE);
    await app.go(chat);
    assert(!(await page.locator(".sidebar").isVisible()), "the drawer is open");
    await page.click('[aria-label="Chats"]');
    await settled(page);
    assert(await page.locator(".sidebar").isVisible(), "the drawer stays closed");
    await app.shot("view-drawer-phone");
    await page.keyboard.press("Escape");
    equal(await page.evaluate(() => document.activeElement.getAttribute("aria-label")), "Chats", "focus");
    await page.setViewport(WIDE);
  });
  await checks.check("on a wide screen the sidebar collapses, which is remembered", async () => {
    await page.click('[aria-label="Chats"]');
    assert(!(await page.locator(".sidebar").isVisible()), "the sidebar is still there");
    await app.shot("view-collapsed");
    equal(await page.evaluate(() => localStorage.getItem("rullama.sidebar")), "hidden", "remembered");
    await page.click('[aria-label="Chats"]');
    assert(await page.locator(".sidebar").isVisible(), "the sidebar does not come back");
  });
  await page.emulateMedia({ "prefers-color-scheme": "light" });
}

export async function keyboard(checks, app) {
  const { page } = app;
  await checks.check("by keyboard alone: skip link, visible focus, New chat, theme", async () => {
    await app.go("#/");
    // As if the page had just been entered from the browser's own bar.
    await page.evaluate(() => {
      document.body.tabIndex = -1;
      document.body.focus();
      document.body.removeAttribute("tabindex");
    });
    await page.keyboard.press("Tab");
    equal(await page.evaluate(() => document.activeElement.className), "skip", "first stop");
    const seen = new Set();
    for (let step = 0; step < 30; step++) {
      await page.keyboard.press("Tab");
      const at = await page.evaluate(() => {
        const element = document.activeElement;
        if (element === document.body) {
          // Past the last stop, where the browser's own buttons would come.
          return { name: "", marked: true };
        }
        const style = getComputedStyle(element);
        const field = element.closest(".composer-field") ?? element;
        const marked = style.outlineStyle !== "none" || getComputedStyle(field).boxShadow !== "none";
        return { name: element.getAttribute("aria-label") ?? element.textContent, marked };
      });
      assert(at.marked, `no visible focus on ${at.name}`);
      seen.add(at.name);
    }
    for (const name of ["New chat", "Search chats", "Models", "Device", "Settings", "Message", "Send"]) {
      assert([...seen].some((one) => one?.includes(name)), `${name} is not reached: ${[...seen].join(", ")}`);
    }
    const theme = () => page.evaluate(() => document.documentElement.dataset.theme ?? "system");
    await page.focus('[aria-label^="Colours"]');
    const themes = [await theme()];
    for (let press = 0; press < 3; press++) {
      await page.keyboard.press("Enter");
      themes.push(await theme());
    }
    equal(themes, ["system", "light", "dark", "system"], "themes");
  });

  await checks.check("after Ctrl+K one can go on typing, whether something was chosen or not", async () => {
    for (const key of ["Escape", "Enter"]) {
      await app.go("#/");
      await page.fill(".composer-input", "");
      await page.focus(".composer-input");
      await page.keyboard.press("Control+k");
      await page.waitForSelector("dialog.switcher");
      await page.keyboard.press(key);
      await page.waitForSelector("dialog.switcher", { state: "detached" });
      await page.keyboard.type("typed");
      equal(await page.inputValue(".composer-input"), "typed", `after ${key}`);
    }
    await page.fill(".composer-input", "");
  });

  await checks.check("those who asked for no motion see none", async () => {
    await page.emulateMedia({ "prefers-reduced-motion": "reduce" });
    const moving = await page.evaluate(() => [...document.querySelectorAll("*")].filter((one) => getComputedStyle(one).animationName !== "none").length);
    equal(moving, 0, "moving elements");
    await page.emulateMedia({ "prefers-reduced-motion": "no-preference" });
  });
}

/** In the page: what a finger would miss. */
function tooSmall() {
  const targets = document.querySelectorAll("button, a[href], summary, .input, label.check");
  return [...targets]
    // What stands in a sentence is as high as its line.
    .filter((one) => one.checkVisibility({ checkVisibilityCSS: true }) && !one.closest("p, .skip"))
    .map((one) => ({ name: one.getAttribute("aria-label") ?? one.textContent.trim(), ...one.getBoundingClientRect().toJSON() }))
    .filter(({ width, height }) => width < 44 || height < 44)
    .map(({ name, width, height }) => `${name}: ${Math.round(width)} × ${Math.round(height)}`);
}

export async function touch(checks, browser, origin) {
  const app = await App.open(browser, origin, { viewport: { ...PHONE, hasTouch: true, isMobile: true } });
  const { page } = app;
  await checks.check("fingers find every target", async () => {
    assert(await page.evaluate(() => matchMedia("(pointer: coarse)").matches), "no finger");
    for (const hash of ["#/", "#/models"]) {
      await app.go(hash);
      await settled(page);
      equal(await page.evaluate(tooSmall), [], hash);
    }
    await app.shot("models-phone");
    await page.click('[aria-label="Settings"]');
    equal(await page.evaluate(tooSmall), [], "settings");
    await app.leaveDialog();
    await page.click('[aria-label="Chats"]');
    await settled(page);
    equal(await page.evaluate(tooSmall), [], "drawer");
  });
  await app.close();
}
