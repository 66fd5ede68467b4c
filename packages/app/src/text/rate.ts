// The speed of a transfer, and its remaining time.
//
// The speed is averaged over the last seconds: an average since the start lags behind a changing network, and the latest sample
// alone flickers. A pause has no speed. For example, no bytes move while shaders compile, and an average over that pause would
// predict hours.

interface Sample {
  time: number;
  loaded: number;
}

const WINDOW = 5000;
/** Milliseconds of samples needed for an estimate. */
const NEEDED = 500;
/** Milliseconds without progress that count as a pause. */
const PAUSE = 3000;

export class Rate {
  #samples: Sample[] = [];

  /** Adds a sample: `loaded` bytes at `time`. Starts over after a pause, or if there are fewer bytes than before. */
  add(loaded: number, time: number): void {
    const last = this.#samples.at(-1);
    if (loaded === last?.loaded) {
      return;
    }
    if (last && (loaded < last.loaded || time - last.time > PAUSE)) {
      this.#samples = [];
    }
    this.#samples.push({ time, loaded });
    while (this.#samples.length > 2 && time - (this.#samples[1] as Sample).time > WINDOW) {
      this.#samples.shift();
    }
  }

  /** Bytes per second; undefined while there are too few samples or in a pause. */
  bytesPerSecond(now: number): number | undefined {
    const [first, last] = [this.#samples[0], this.#samples.at(-1)];
    if (!first || !last || last.time - first.time < NEEDED || now - last.time > PAUSE) {
      return undefined;
    }
    return ((last.loaded - first.loaded) / (last.time - first.time)) * 1000;
  }

  /** Seconds until `total` bytes are loaded; undefined if the rate is unknown or irregular. */
  secondsLeft(total: number, now: number): number | undefined {
    const rate = this.bytesPerSecond(now);
    const last = this.#samples.at(-1);
    if (!rate || !last || !this.#steady) {
      return undefined;
    }
    return Math.max(0, total - last.loaded) / rate;
  }

  /** Whether no single gap makes up more than half of the sampled time. */
  get #steady(): boolean {
    const times = this.#samples.map(({ time }) => time);
    const waits = times.slice(1).map((time, index) => time - (times[index] as number));
    return Math.max(...waits) <= ((times.at(-1) as number) - (times[0] as number)) / 2;
  }
}
