// The log that `rullama serve` keeps of what pages report. Asked for from here, not through the page: when a phone ends the page,
// this is all that is left of it.

import { get as getHttp } from "node:http";
import { get as getHttps } from "node:https";

/** @typedef {{ sequence: number, time?: string, tag: string, text: string }} LogMessage */

const PATIENCE = 10_000;

/**
 * The messages after a number.
 * @param {string} page any address of the server @param {number} since
 * @returns {Promise<{ messages: LogMessage[], latest: number } | undefined>} nothing from a server that keeps no log
 */
export async function readLog(page, since) {
  try {
    const address = new URL(`/api/log?since=${since}`, page);
    // A server on a network asks for the token that is in the address it prints.
    const token = new URL(page).searchParams.get("token");
    if (token !== null) {
      address.searchParams.set("token", token);
    }
    const answer = JSON.parse(await fetchText(address));
    return Array.isArray(answer.messages) && typeof answer.latest === "number" ? answer : undefined;
  } catch {
    // No such address, no JSON, or the server is reached only from the phone.
    return undefined;
  }
}

/** The number of the newest message. @param {string} page */
export async function latest(page) {
  return (await readLog(page, Number.MAX_SAFE_INTEGER))?.latest ?? 0;
}

function fetchText(url) {
  return new Promise((resolve, reject) => {
    const get = url.protocol === "https:" ? getHttps : getHttp;
    // The phone trusts the server's certificate, this machine need not: what is read is printed and nothing else.
    const request = get(url, { rejectUnauthorized: false, timeout: PATIENCE }, (response) => {
      let text = "";
      response.setEncoding("utf8");
      response.on("data", (piece) => (text += piece));
      response.on("end", () => (response.statusCode === 200 ? resolve(text) : reject(new Error(`status ${response.statusCode}`))));
      response.on("error", reject);
    });
    request.on("timeout", () => request.destroy(new Error("no answer")));
    request.on("error", reject);
  });
}
