// Sounds, decoded by the browser.

/** Samples per second that the models hear. */
export const RATE = 16_000;

/** Milliseconds to wait for the length of a file, which some browsers never tell. */
const PATIENCE = 3000;

/** The samples of a sound, mono at 16 kHz. Rejects with `media.sound.unknown` if the browser can't decode it. */
export async function samplesOf(content: Blob): Promise<Float32Array> {
  const decoded = await decode(content);
  const channels = Array.from({ length: decoded.numberOfChannels }, (_, channel) => decoded.getChannelData(channel));
  const [first] = channels;
  if (!first || channels.length === 1) {
    return first ?? new Float32Array();
  }
  return first.map((_, at) => channels.reduce((sum, channel) => sum + (channel[at] ?? 0), 0) / channels.length);
}

/** The length of a sound in seconds. One that is longer than `longest` is not decoded, as that could take much memory. */
export async function secondsOf(content: Blob, longest: number): Promise<number> {
  const told = await toldSeconds(content);
  return told !== undefined && told > longest + 1 ? told : (await decode(content)).duration;
}

async function decode(content: Blob): Promise<AudioBuffer> {
  if (!("OfflineAudioContext" in globalThis)) {
    throw Object.assign(new Error("this browser has no audio decoder"), { code: "media.sound.no_decoder" });
  }
  const bytes = await content.arrayBuffer();
  try {
    return await new OfflineAudioContext(1, 1, RATE).decodeAudioData(bytes);
  } catch (error) {
    throw Object.assign(new Error(`the sound can't be decoded: ${String(error)}`), { code: "media.sound.unknown" });
  }
}

/** What the file says of its length; undefined if it says nothing. */
async function toldSeconds(content: Blob): Promise<number | undefined> {
  const url = URL.createObjectURL(content);
  const player = new Audio();
  try {
    return await new Promise((resolve) => {
      player.addEventListener("loadedmetadata", () => resolve(Number.isFinite(player.duration) ? player.duration : undefined));
      player.addEventListener("error", () => resolve(undefined));
      setTimeout(() => resolve(undefined), PATIENCE);
      player.preload = "metadata";
      player.src = url;
    });
  } finally {
    player.removeAttribute("src");
    URL.revokeObjectURL(url);
  }
}
