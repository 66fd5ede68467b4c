// Addresses of model files as users paste them.

const HUGGING_FACE = /^(www\.)?(huggingface\.co|hf\.co)$/;

/**
 * The address of the file itself. On Hugging Face, people copy the address of the page about a file (`…/blob/…`); the file is at
 * `…/resolve/…`. Gives the text unchanged if it isn't an address.
 */
export function fileAddress(typed: string): string {
  const text = typed.trim();
  let url: URL;
  try {
    url = new URL(text);
  } catch {
    return text;
  }
  if (HUGGING_FACE.test(url.hostname)) {
    url.pathname = url.pathname.replace(/^(\/(?:datasets\/)?[^/]+\/[^/]+)\/blob\//, "$1/resolve/");
  }
  return url.href;
}
