// Which addresses a reply may link to. A model repeats what it read, so its links are a stranger's.

const SCHEMES = ["http:", "https:", "mailto:"];

/** The address if following it is harmless; relative ones would lead into this app and are refused as well. */
export function safeAddress(text: string): string | undefined {
  let url: URL;
  try {
    url = new URL(text);
  } catch {
    return undefined;
  }
  return SCHEMES.includes(url.protocol) ? url.href : undefined;
}
