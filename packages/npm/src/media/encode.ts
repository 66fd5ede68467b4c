// Encodes images and sounds with the wasm module, on the engine's side.

import type { Cancel } from "../loading.js";
import type { DecodedMedium, SentMedium } from "../protocol.js";
import type { EncodeProgress } from "../types.js";
import type { WebAttachment, WebEngine } from "../wasm/rullama.js";

/** What encoding needs of the call that it belongs to. */
export interface Encoding {
  engine: WebEngine;
  cancel: Cancel;
  /** Asks the page for an image or a sound, decoded. */
  decoded(medium: SentMedium): Promise<DecodedMedium>;
  tell(progress: EncodeProgress): void;
}

/** Encoded images and sounds. A session that gets the attachments frees them. */
export interface Encoded {
  attachments: WebAttachment[];
  /** The attachments' names, by the numbers of the media. */
  names: Map<number, string>;
}

/** Encodes one after the other, so that only one is in memory as pixels or samples. */
export async function encode(media: readonly SentMedium[], encoding: Encoding): Promise<Encoded> {
  const encoded: Encoded = { attachments: [], names: new Map() };
  try {
    for (const [index, medium] of media.entries()) {
      const tell = (fraction: number) => encoding.tell({ medium: medium.medium, index, count: media.length, fraction });
      tell(0);
      const attachment = await encodeOne(medium, encoding, (fraction) => fraction < 1 && tell(fraction));
      encoded.attachments.push(attachment);
      encoded.names.set(medium.number, attachment.name);
      tell(1);
    }
    return encoded;
  } catch (thrown) {
    encoded.attachments.forEach((attachment) => attachment.free());
    throw thrown;
  }
}

async function encodeOne(medium: SentMedium, { engine, cancel, decoded }: Encoding, told: (fraction: number) => void): Promise<WebAttachment> {
  const content = await decoded(medium);
  return "rgba" in content
    ? engine.encodeImage(content.rgba, content.width, content.height, medium.budget, told, cancel)
    : engine.encodeSound(content.samples, told, cancel);
}
