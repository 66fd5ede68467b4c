// The file of an image or a sound from its URL or data URL.

import { RullamaError } from "../errors.js";
import { unreachable } from "../source/reach.js";

/** Reads a file. The browser may take it from its cache. */
export async function fetchBlob(url: string | URL, signal?: AbortSignal): Promise<Blob> {
  const href = String(url);
  if (/^data:/i.test(href)) {
    // Not by `fetch`: policies of pages often forbid that.
    return dataBlob(href);
  }
  let response: Response;
  try {
    response = await fetch(absolute(href), signal ? { signal } : {});
    if (response.ok) {
      return await response.blob();
    }
  } catch (cause) {
    if (signal?.aborted) {
      throw RullamaError.cancelled(signal.reason);
    }
    if (cause instanceof RullamaError) {
      throw cause;
    }
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new RullamaError("source.connection", await unreachable(absolute(href), reason), { cause });
  }
  const { status } = response;
  await response.body?.cancel().catch(() => {});
  throw new RullamaError("source.status", `The server answered with HTTP status ${status} for \`${href}\`.`, { details: { status } });
}

function absolute(url: string): string {
  try {
    return new URL(url, globalThis.document?.baseURI ?? globalThis.location?.href).href;
  } catch (cause) {
    throw new RullamaError("chat.wrong_type", `\`${url.slice(0, 100)}\` is not a URL.`, { cause });
  }
}

/** The file in a data URL. */
function dataBlob(url: string): Blob {
  const [, type = "", base64, data = ""] = /^data:([^,;]*)(?:;(?!base64,)[^,;]*)*(;base64)?,(.*)$/is.exec(url) ?? [];
  try {
    const bytes = base64 ? base64Bytes(decodeURIComponent(data)) : new TextEncoder().encode(decodeURIComponent(data));
    return new Blob([bytes], { type });
  } catch (cause) {
    throw new RullamaError("chat.wrong_type", `A data URL is damaged: \`${url.slice(0, 60)}…\`.`, { cause });
  }
}

/** The bytes of base64. Throws if there are other characters. */
export function base64Bytes(text: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
}
