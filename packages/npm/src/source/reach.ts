// Why a server cannot be reached. Browsers reject such a request without a reason, so that pages cannot explore networks; this file
// finds out as much as a page may know.

/** A server that has not answered at all is given up after this many attempts; one that has answered before gets more. */
export const FIRST_ATTEMPTS = 2;

/** Milliseconds until a server that has not answered at all is given up. */
export const FIRST_SILENCE = 8_000;

/** Milliseconds for the request that tells a server without CORS from one that is down. */
const PROBE = 3_000;

/** The page's origin, for tests to replace. */
interface Place {
  location?: { origin: string; protocol: string } | undefined;
  navigator?: { onLine?: boolean } | undefined;
}

/** The reason that a request for `url` was not answered, as a sentence. `reason` is what the browser said. */
export async function unreachable(url: string, reason: string, send: typeof fetch = fetch, place: Place = globalThis): Promise<string> {
  const { host, protocol, origin, hostname } = new URL(url, place.location?.origin);
  const here = place.location;
  if (place.navigator?.onLine === false) {
    return `${host} could not be reached because this device is offline.`;
  }
  const isLocal = hostname === "localhost" || hostname === "127.0.0.1" || hostname === "[::1]";
  if (here?.protocol === "https:" && protocol === "http:" && !isLocal) {
    return `${host} could not be reached: this page is served over https, so the browser blocks http addresses. Use an https address.`;
  }
  if (here !== undefined && here.origin !== "null" && here.origin !== origin && (await answers(url, send))) {
    return `${host} answers, but it does not allow pages of ${here.origin} to read its files (CORS).`;
  }
  return `${host} could not be reached: ${reason.replace(/\.$/, "")}. Check the address and the network connection.`;
}

/** Whether a server answers a request whose answer the page may not read. */
async function answers(url: string, send: typeof fetch): Promise<boolean> {
  try {
    await send(url, { method: "HEAD", mode: "no-cors", cache: "no-store", signal: AbortSignal.timeout(PROBE) });
    return true;
  } catch {
    return false;
  }
}
