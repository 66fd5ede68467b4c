// How fast bytes come, and when they will all be there.
//
// Speed is taken over the last seconds: a mean since the start would lag behind a network that changes, and that of the
// last moment would flicker.

interface Sample {
  time: number;
  loaded: number;
}

const WINDOW = 5000;
/** Before this many milliseconds any speed would be a guess. */
const SOONEST = 500;

export class Rate {
  #samples: Sample[] = [];

  /** Notes that `loaded` bytes are there. Less than before means that something began anew. */
  add(loaded: number, time: number): void {
    const last = this.#samples.at(-1);
    if (last && loaded < last.loaded) {
      this.#samples = [];
    }
    this.#samples.push({ time, loaded });
    while (this.#samples.length > 2 && time - (this.#samples[1] as Sample).time > WINDOW) {
      this.#samples.shift();
    }
  }

  /** Bytes a second; undefined while nobody can tell. */
  get bytesPerSecond(): number | undefined {
    const [first, last] = [this.#samples[0], this.#samples.at(-1)];
    if (!first || !last || last.time - first.time < SOONEST) {
      return undefined;
    }
    return ((last.loaded - first.loaded) / (last.time - first.time)) * 1000;
  }

  /** Seconds until `total` bytes are there; undefined while nobody can tell. */
  secondsLeft(total: number): number | undefined {
    const rate = this.bytesPerSecond;
    const last = this.#samples.at(-1);
    if (!rate || !last) {
      return undefined;
    }
    return Math.max(0, total - last.loaded) / rate;
  }
}
