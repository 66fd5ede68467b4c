// The command line of the walk.

import { parseArgs } from "node:util";

export const HELP = `\
Tests the app on a phone, or in any browser with a WebDriver: opens the app, loads a model, sends a message and prints the results

Usage: cargo xtask phone --driver URL [OPTIONS]

  --driver URL          Address of the WebDriver server (safaridriver, chromedriver or geckodriver), such as
                        http://127.0.0.1:4444
  --page URL            Address of the app, as the phone reaches it [default: http://127.0.0.1:11435/]
  --model NAME|URL      Model to load: one that is stored in the browser, one of the server's, or the URL of a GGUF file
                        [default: the stored one, or else the server's only one, or else the demo model]
  --say TEXT            Message to send [default: Hello! Who are you?]
  --set NAME=VALUE      Change a setting of the app before loading, such as context=1024, maxTokens=64 or think=false; can be
                        repeated. The setting is kept afterwards
  --keep                Keep the browser session open, so that the next run continues with it
  --clean               First delete everything that the app has stored: models, chats, settings, service worker and caches.
                        Without --model or --say, do nothing else
  --screenshot FILE     Save a PNG picture of the page at the end, also after a failure
  --timeout SECONDS     Time limit for each of opening, loading and replying [default: 1800]
  --capabilities JSON   WebDriver capabilities to request [default: Safari on iOS, Chrome or Firefox, whichever the driver has]
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
