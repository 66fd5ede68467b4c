// URLs of model files: what users paste, and what is requested for it.

import { RullamaError } from "../errors.js";

/** Hosts whose file pages have `/blob/` where the file itself has `/resolve/`. */
const HUGGING_FACE = /^(?:www\.)?(?:huggingface\.co|hf\.co|hf-mirror\.com)$/;

/**
 * The URL of the file that a URL stands for: a Hugging Face page about a file (`…/blob/main/model.gguf`) becomes the file itself
 * (`…/resolve/main/model.gguf`). Other URLs stay as they are.
 */
export function downloadUrl(url: string): string {
  let parsed: URL;
  try {
    parsed = new URL(url);
  } catch {
    return url;
  }
  const page = /^(\/(?:(?:datasets|spaces)\/)?[^/]+\/[^/]+)\/blob\/(.+)$/.exec(parsed.pathname);
  if (!page || !HUGGING_FACE.test(parsed.host)) {
    return url;
  }
  parsed.pathname = `${page[1]}/resolve/${page[2]}`;
  return parsed.href;
}

/** The absolute URL of a model's file. In a worker, a relative URL would have another base than on the page. */
export function absolute(url: string | URL): string {
  let href: string;
  try {
    href = new URL(url, globalThis.document?.baseURI ?? globalThis.location?.href).href;
  } catch (cause) {
    throw new RullamaError("option.wrong_type", `\`${String(url)}\` is not a URL.`, { cause });
  }
  return downloadUrl(href);
}

/** The URLs of all parts of a split model (`…-00001-of-00003.gguf`), from the URL of any part; for any other URL, that URL alone. */
export function splitUrls(url: string): string[] {
  const found = /-(\d{5})-of-(\d{5})\.gguf(?=$|[?#])/.exec(url);
  const count = Number(found?.[2]);
  if (!found || count < 1) {
    return [url];
  }
  const part = (index: number) => `-${String(index + 1).padStart(5, "0")}-of-${found[2]}.gguf`;
  const [before, after] = [url.slice(0, found.index), url.slice(found.index + found[0].length)];
  return Array.from({ length: count }, (_, index) => before + part(index) + after);
}

/** The last part of a URL's path, or of a file path. */
export function fileName(name: string): string {
  const path = name.split(/[?#]/)[0] ?? name;
  return path.split("/").filter(Boolean).pop() ?? name;
}
