// Records the microphone: how loud it is now, and at the end a WAV file that every browser can play.

import { RATE, samplesOf } from "./sound";
import { wavFile } from "./wav";

/** Bits per second of the recording before it is decoded: far more than speech needs. */
const BITS = 128_000;

export class Recorder {
  readonly #stream: MediaStream;
  readonly #context = new AudioContext();
  readonly #analyser: AnalyserNode;
  readonly #recorder: MediaRecorder;
  readonly #pieces: Blob[] = [];
  readonly #started = performance.now();
  #ended: number | undefined;

  private constructor(stream: MediaStream) {
    this.#stream = stream;
    this.#analyser = this.#context.createAnalyser();
    this.#context.createMediaStreamSource(stream).connect(this.#analyser);
    this.#recorder = new MediaRecorder(stream, { audioBitsPerSecond: BITS });
    this.#recorder.addEventListener("dataavailable", ({ data }) => this.#pieces.push(data));
    this.#recorder.start();
  }

  /** Asks for the microphone and starts. */
  static async start(): Promise<Recorder> {
    return new Recorder(await openDevice({ audio: { channelCount: 1, echoCancellation: false, autoGainControl: true, noiseSuppression: true } }));
  }

  /** Seconds so far. */
  get seconds(): number {
    return ((this.#ended ?? performance.now()) - this.#started) / 1000;
  }

  /** How loud it is now, from 0 to 1, on a scale as people hear it. */
  get level(): number {
    const samples = new Float32Array(this.#analyser.fftSize);
    this.#analyser.getFloatTimeDomainData(samples);
    const power = samples.reduce((sum, sample) => sum + sample * sample, 0) / samples.length;
    // From −60 dB, which is silence, to full level.
    return Math.max(0, Math.min(1, 1 + (10 * Math.log10(power + 1e-12)) / 60));
  }

  /** Ends the recording; gives at most `longest` seconds of it. */
  async finish(longest: number): Promise<File> {
    const stopped = new Promise((resolve) => this.#recorder.addEventListener("stop", resolve, { once: true }));
    this.#recorder.stop();
    this.#ended = performance.now();
    await stopped;
    this.cancel();
    const samples = await samplesOf(new Blob(this.#pieces, { type: this.#recorder.mimeType }));
    return new File([wavFile(samples.subarray(0, longest * RATE), RATE)], `recording-${clock()}.wav`, { type: "audio/wav" });
  }

  /** Gives the microphone back. */
  cancel(): void {
    this.#ended ??= performance.now();
    this.#stream.getTracks().forEach((track) => track.stop());
    void this.#context.close().catch(() => {});
  }
}

/** Asks for the camera or the microphone. Rejects with a code that `text/errors.ts` explains. */
export async function openDevice(wanted: MediaStreamConstraints): Promise<MediaStream> {
  const device = wanted.video ? "camera" : "microphone";
  if (!navigator.mediaDevices?.getUserMedia) {
    throw Object.assign(new Error("the page has no access to devices"), { code: isSecureContext ? "capture.unavailable" : "capture.insecure", details: { device } });
  }
  try {
    return await navigator.mediaDevices.getUserMedia(wanted);
  } catch (error) {
    const { name, message } = error as DOMException;
    throw Object.assign(new Error(`${name}: ${message}`), { code: CODES[name] ?? "capture.unavailable", details: { device } });
  }
}

const CODES: Readonly<Record<string, string>> = {
  NotAllowedError: "capture.denied",
  SecurityError: "capture.denied",
  NotFoundError: "capture.missing",
  OverconstrainedError: "capture.missing",
  NotReadableError: "capture.busy",
  AbortError: "capture.busy",
};

/** The time of day, for the name of a file. */
export function clock(now = new Date()): string {
  return [now.getHours(), now.getMinutes(), now.getSeconds()].map((part) => String(part).padStart(2, "0")).join("");
}
