// A quick look at an address before a download: does the server answer, with success, and with a GGUF file?
//
// The npm package also gives up soon on a server that never answers, but its error has one code, `source.connection`, for every reason.
// The page has a text and a next step for each of them, so it needs a code for each. A page cannot learn why a request failed: DNS, a
// refused connection and CORS all look alike. A second request without CORS tells the last one apart.

import { fileName } from "./choice";

/** Seconds that a server has to answer. */
const SECONDS = 8;

const MAGIC = "GGUF";

/** Fails with a code if the address can't be the address of a model. */
export async function probe(address: string, signal: AbortSignal): Promise<void> {
  let url: URL;
  try {
    url = new URL(address, location.href);
  } catch {
    throw failure("source.address", `“${address}” is not an address`);
  }
  if (!/^(https?|blob):$/.test(url.protocol)) {
    throw failure("source.address", `${url.protocol} is not http or https`);
  }
  // Ends the request as soon as its first bytes are here.
  const done = new AbortController();
  const timeout = AbortSignal.timeout(SECONDS * 1000);
  const either = AbortSignal.any([signal, timeout, done.signal]);
  try {
    const response = await fetch(url, { headers: { range: "bytes=0-3" }, cache: "no-store", signal: either });
    if (!response.ok) {
      throw failure("source.status", `HTTP ${response.status} from ${url.href}`, { status: response.status });
    }
    checkMagic(await firstBytes(response), fileName(url.href));
  } catch (error) {
    if (signal.aborted) {
      throw failure("cancelled", "the check was stopped");
    }
    if (timeout.aborted) {
      throw failure("source.timeout", `no answer from ${url.host} within ${SECONDS} seconds`, { file: url.host, seconds: SECONDS });
    }
    throw hasCode(error) ? error : await unreachable(url, error, either);
  } finally {
    done.abort();
  }
}

/** Fails unless a file begins as every GGUF file does. */
export async function checkFile(file: File): Promise<void> {
  let bytes: Uint8Array;
  try {
    bytes = new Uint8Array(await file.slice(0, MAGIC.length).arrayBuffer());
  } catch (error) {
    throw failure("source.io", `${file.name} can't be read: ${String((error as Error).message)}`, { file: file.name });
  }
  checkMagic(bytes, file.name);
}

function checkMagic(bytes: Uint8Array, name: string): void {
  if (String.fromCharCode(...bytes.subarray(0, MAGIC.length)) !== MAGIC) {
    throw failure("gguf.not_gguf", `${name} does not begin with “${MAGIC}”`, { file: name });
  }
}

async function firstBytes(response: Response): Promise<Uint8Array> {
  const reader = response.body?.getReader();
  const bytes: number[] = [];
  while (reader && bytes.length < MAGIC.length) {
    const { done, value } = await reader.read();
    if (done) {
      break;
    }
    bytes.push(...value.subarray(0, MAGIC.length));
  }
  return Uint8Array.from(bytes);
}

/** Why a request failed without an answer, as far as a page can tell. */
async function unreachable(url: URL, error: unknown, signal: AbortSignal): Promise<Error> {
  const reason = error instanceof Error ? error.message : String(error);
  if (navigator.onLine === false) {
    return failure("source.offline", reason);
  }
  if (url.origin !== location.origin) {
    const answers = await fetch(url, { method: "HEAD", mode: "no-cors", cache: "no-store", signal }).then(() => true, () => false);
    if (answers) {
      return failure("source.cors", `${url.host} answers, but without CORS headers`);
    }
  }
  return failure("source.connection", `no connection to ${url.host}: ${reason}`);
}

function failure(code: string, message: string, details: Record<string, unknown> = {}): Error {
  return Object.assign(new Error(message), { code, details });
}

function hasCode(error: unknown): boolean {
  return typeof (error as { code?: unknown } | undefined)?.code === "string";
}
