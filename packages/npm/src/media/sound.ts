// Decodes sounds with the browser: one channel, 16,000 samples a second.

import { RullamaError } from "../errors.js";
import type { DecodedSound } from "../protocol.js";
import type { SoundSource } from "../types.js";
import { reasonOf, unreadable } from "./errors.js";
import { fetchBlob } from "./fetch.js";
import { formatOf } from "./formats.js";
import { kindOf } from "./kinds.js";

/** Samples per second of every sound that a model hears. */
const RATE = 16_000;

/** The sound as it is now, if the program may change it later. */
export async function keepSound(source: SoundSource): Promise<SoundSource> {
  switch (kindOf(source)) {
    case "Float32Array":
      return (source as Float32Array).slice();
    case "AudioBuffer":
      return bufferOf(mixed(source as AudioBuffer), (source as AudioBuffer).sampleRate);
    default:
      return source;
  }
}

/** The samples of a sound. */
export async function decodeSound(source: SoundSource, signal?: AbortSignal): Promise<DecodedSound> {
  switch (kindOf(source)) {
    case "Float32Array":
      return { samples: (source as Float32Array).slice() };
    case "AudioBuffer":
      return { samples: await resampled(source as AudioBuffer) };
    case "Blob":
    case "File":
      return { samples: await decodeFile(source as Blob) };
    default:
      return { samples: await decodeFile(await fetchBlob(source as string | URL, signal)) };
  }
}

async function decodeFile(file: Blob): Promise<Float32Array<ArrayBuffer>> {
  const context = offline(1);
  let bytes: ArrayBuffer;
  try {
    bytes = await file.arrayBuffer();
  } catch (cause) {
    throw unreadable(file, cause);
  }
  try {
    // The samples come at the rate of the context.
    return mixed(await context.decodeAudioData(bytes));
  } catch (cause) {
    throw (await formatOf("audio", file)) === undefined
      ? new RullamaError("media.sound.unknown", "This is not a sound that can be read. Use WAV, MP3, FLAC, Ogg or M4A.", { cause })
      : new RullamaError("media.sound.broken", `The sound can't be decoded: ${reasonOf(cause)}.`, { cause });
  }
}

/** All channels as one: their average, as the engine mixes them natively. */
function mixed(sound: AudioBuffer): Float32Array<ArrayBuffer> {
  const mono = sound.getChannelData(0).slice();
  for (let channel = 1; channel < sound.numberOfChannels; channel++) {
    sound.getChannelData(channel).forEach((sample, at) => (mono[at]! += sample));
  }
  return sound.numberOfChannels === 1 ? mono : mono.map((sum) => sum / sound.numberOfChannels);
}

async function resampled(sound: AudioBuffer): Promise<Float32Array<ArrayBuffer>> {
  const mono = mixed(sound);
  if (sound.sampleRate === RATE) {
    return mono;
  }
  const context = offline(Math.max(1, Math.round(sound.duration * RATE)));
  const source = context.createBufferSource();
  source.buffer = bufferOf(mono, sound.sampleRate);
  source.connect(context.destination);
  source.start();
  return mixed(await context.startRendering());
}

function bufferOf(samples: Float32Array<ArrayBuffer>, sampleRate: number): AudioBuffer {
  const buffer = new AudioBuffer({ length: samples.length, numberOfChannels: 1, sampleRate });
  buffer.copyToChannel(samples, 0);
  return buffer;
}

function offline(length: number): OfflineAudioContext {
  if (typeof OfflineAudioContext === "undefined") {
    throw new RullamaError(
      "media.sound.no_decoder",
      "Sound files can't be decoded here: browsers decode them on pages, not in workers. Decode them on the page, and pass a `Float32Array`.",
    );
  }
  return new OfflineAudioContext(1, length, RATE);
}
