// What the walk prints: a line for each thing that happened, under the name of its stage.

/** Milliseconds between two lines about the same thing. */
const TELL_EVERY = 5000;

/** Control characters that a page or a log could command the terminal with. */
const CONTROLS = /[\0-\x08\x0b-\x1f\x7f-\x9f]/g;

/** @param {string} stage @param {string} text what follows the first line is indented */
export function say(stage, text) {
  const harmless = text.replace(CONTROLS, "\ufffd");
  console.log(`${stage.padEnd(9)}${harmless.replaceAll("\n", `\n${" ".repeat(9)}`)}`);
}

/** @param {number} since milliseconds, as `performance.now()` gives them */
export function secondsSince(since) {
  return `${((performance.now() - since) / 1000).toFixed(1)} s`;
}

/** @param {number} count */
export function bytes(count) {
  const units = ["B", "kB", "MB", "GB"];
  const power = Math.min(units.length - 1, count > 0 ? Math.floor(Math.log10(count) / 3) : 0);
  return `${(count / 1000 ** power).toFixed(power === 0 ? 0 : 1)} ${units[power]}`;
}

/** A problem that the page shows, in one line. @param {{ code: string, title: string, text: string, detail: string }} problem */
export function problemText({ code, title, text, detail }) {
  // The detail begins with the code already.
  return `${title}. ${text} (${detail || code})`;
}

/** Lines about something long: at once when it is something new, else now and then. */
export class Progress {
  /** What was seen last, told or not. */
  last = "";
  #stage;
  #name;
  #told = { text: "", at: 0 };

  /** @param {string} stage */
  constructor(stage) {
    this.#stage = stage;
  }

  /** @param {string | undefined} name what this is about @param {string | undefined} text how far it is */
  about(name, text) {
    if (!text) {
      return;
    }
    this.last = text;
    const now = performance.now();
    if (text === this.#told.text || (name === this.#name && now - this.#told.at < TELL_EVERY)) {
      return;
    }
    this.#name = name;
    this.#told = { text, at: now };
    say(this.#stage, text);
  }
}
