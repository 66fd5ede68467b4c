// The command line of the walk.

import { parseArgs } from "node:util";

export const HELP = `\
The app on a phone, or in any browser with a WebDriver: opens it, loads a model, says something, prints what happened

Usage: cargo xtask phone --driver URL [OPTIONS]

  --driver URL          the WebDriver server: safaridriver, chromedriver or geckodriver, such as http://127.0.0.1:4444
  --page URL            the app, as the phone sees it [http://127.0.0.1:11435/]
  --model NAME|URL      a model stored in the browser, one of the server's, or the address of a GGUF file; unless told,
                        the one that is stored, the only one of the server, or the demo model if that has none
  --say TEXT            what to say [Hello! Who are you?]
  --set NAME=VALUE      a setting of the page before loading, such as context=1024, maxTokens=64 or think=false; several times
                        if you like. It stays set
  --keep                keep the session, for the next time to go on with; without it, the session ends
  --clean               first remove all that the page stored: models, conversations, settings, service worker, caches. Without
                        --model or --say, nothing more is done
  --screenshot FILE     a picture of the page at the end, also of a failure, as PNG
  --timeout SECONDS     the most that opening, loading and replying may take, each [1800]
  --capabilities JSON   what to ask the driver for, instead of Safari on iOS, Chrome or Firefox, whichever it has
`;

/**
 * @typedef {object} Options
 * @property {string} driver
 * @property {string} page
 * @property {string} [model]
 * @property {string} say
 * @property {Record<string, unknown>} settings
 * @property {boolean} keep
 * @property {boolean} clean
 * @property {boolean} chat whether anything is to be done but cleaning
 * @property {string} [screenshot]
 * @property {number} timeout milliseconds
 * @property {Record<string, unknown>} [capabilities]
 */

/** What is wrong with a command line. */
export class UsageError extends Error {}

/** @param {string[]} words @returns {Options | undefined} nothing when help is asked for */
export function readOptions(words) {
  const text = { type: "string" };
  const flag = { type: "boolean" };
  let values;
  try {
    ({ values } = parseArgs({
      args: words,
      options: {
        driver: text, page: text, model: text, say: text, set: { type: "string", multiple: true }, keep: flag, clean: flag,
        screenshot: text, timeout: text, capabilities: text, help: { type: "boolean", short: "h" },
      },
    }));
  } catch (error) {
    throw new UsageError(error.message);
  }
  if (values.help) {
    return undefined;
  }
  if (values.driver === undefined) {
    throw new UsageError("--driver is needed: the address of a WebDriver server");
  }
  const seconds = Number(values.timeout ?? 1800);
  if (!(seconds > 0)) {
    throw new UsageError(`--timeout: \`${values.timeout}\` is not a number of seconds`);
  }
  return {
    driver: address("--driver", values.driver),
    page: address("--page", values.page ?? "http://127.0.0.1:11435/"),
    model: values.model,
    say: values.say ?? "Hello! Who are you?",
    settings: Object.fromEntries((values.set ?? []).map(setting)),
    keep: values.keep ?? false,
    clean: values.clean ?? false,
    chat: !values.clean || values.model !== undefined || values.say !== undefined,
    screenshot: values.screenshot,
    timeout: seconds * 1000,
    capabilities: values.capabilities === undefined ? undefined : object("--capabilities", values.capabilities),
  };
}

function address(option, value) {
  if (!URL.canParse(value) || !/^https?:$/.test(new URL(value).protocol)) {
    throw new UsageError(`${option}: \`${value}\` is not an address such as http://127.0.0.1:4444`);
  }
  return new URL(value).href;
}

function object(option, value) {
  try {
    const read = JSON.parse(value);
    if (typeof read === "object" && read !== null && !Array.isArray(read)) {
      return read;
    }
  } catch {
    // Said below.
  }
  throw new UsageError(`${option}: \`${value}\` is not a JSON object`);
}

/** `maxTokens=64` as a name and a value; what is no JSON is a text. */
function setting(words) {
  const [, name, value] = /^(\w+)=(.*)$/s.exec(words) ?? [];
  if (name === undefined) {
    throw new UsageError(`--set: \`${words}\` is not NAME=VALUE`);
  }
  try {
    return [name, JSON.parse(value)];
  } catch {
    return [name, value];
  }
}
