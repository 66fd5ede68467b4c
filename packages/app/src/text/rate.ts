// How fast bytes come, and when they will all be there.
//
// Speed is taken over the last seconds: a mean since the start would lag behind a network that changes, and that of the
// last moment would flicker. A halt has no speed, and nobody knows how long it lasts: while kernels are made, for one, no byte
// moves, and a mean over that would tell of hours.

interface Sample {
  time: number;
  loaded: number;
}

const WINDOW = 5000;
/** Before this many milliseconds any speed would be a guess. */
const SOONEST = 500;
/** After this many milliseconds without a byte it is a halt. */
const HALT = 3000;

export class Rate {
  #samples: Sample[] = [];

  /** Notes that `loaded` bytes are there. After a halt, or with less than before, it begins anew. */
  add(loaded: number, time: number): void {
    const last = this.#samples.at(-1);
    if (loaded === last?.loaded) {
      return;
    }
    if (last && (loaded < last.loaded || time - last.time > HALT)) {
      this.#samples = [];
    }
    this.#samples.push({ time, loaded });
    while (this.#samples.length > 2 && time - (this.#samples[1] as Sample).time > WINDOW) {
      this.#samples.shift();
    }
  }

  /** Bytes a second as it is `now`; undefined while nobody can tell. */
  bytesPerSecond(now: number): number | undefined {
    const [first, last] = [this.#samples[0], this.#samples.at(-1)];
    if (!first || !last || last.time - first.time < SOONEST || now - last.time > HALT) {
      return undefined;
    }
    return ((last.loaded - first.loaded) / (last.time - first.time)) * 1000;
  }

  /** Seconds until `total` bytes are there; undefined while nobody can tell, as where they come in fits and starts. */
  secondsLeft(total: number, now: number): number | undefined {
    const rate = this.bytesPerSecond(now);
    const last = this.#samples.at(-1);
    if (!rate || !last || !this.#steady) {
      return undefined;
    }
    return Math.max(0, total - last.loaded) / rate;
  }

  /** Whether no single wait made up more than half of the time that is looked at. */
  get #steady(): boolean {
    const times = this.#samples.map(({ time }) => time);
    const waits = times.slice(1).map((time, index) => time - (times[index] as number));
    return Math.max(...waits) <= ((times.at(-1) as number) - (times[0] as number)) / 2;
  }
}
