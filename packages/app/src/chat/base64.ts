// Bytes as base64 and back.

/** Bytes that are turned into characters at once: more arguments than that are too many for some browsers. */
const PIECE = 0x8000;

export async function toBase64(content: Blob): Promise<string> {
  const bytes = new Uint8Array(await content.arrayBuffer());
  const pieces: string[] = [];
  for (let at = 0; at < bytes.length; at += PIECE) {
    pieces.push(String.fromCharCode(...bytes.subarray(at, at + PIECE)));
  }
  return btoa(pieces.join(""));
}

/** The bytes; undefined if the text is not base64. */
export function fromBase64(text: string): Uint8Array<ArrayBuffer> | undefined {
  try {
    return Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  } catch {
    return undefined;
  }
}
