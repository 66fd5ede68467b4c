// Progress of a load: one event per visible change, each with the progress of the whole load.

import type { ProgressEvent } from "./types.js";

type Status = ProgressEvent["status"];

/** Milliseconds between two events of one stage and file, except the first and the last: screens show no more. */
const EVENT_PAUSE = 50;

/**
 * The stages that count, with their shares of the time a load takes on a typical machine. A download into the store comes first
 * and takes most of it. What is read over the network or checked while it is uploaded counts as part of the upload.
 */
const SHARES = {
  stored: { download: 0, upload: 0.8, compile: 0.2 },
  downloaded: { download: 0.8, upload: 0.16, compile: 0.04 },
} as const;

/** Turns the stages of one load into events. */
export class LoadProgress {
  readonly #tell: (event: ProgressEvent) => void;
  readonly #now: () => number;
  readonly #last = new Map<string, { time: number; loaded: number }>();
  /** The files that are downloaded into the store before anything is uploaded, by URL, with the fraction that has arrived. */
  readonly #downloads = new Map<string, number>();
  #upload = 0;
  #compile = 0;
  #overall = 0;

  constructor(tell: (event: ProgressEvent) => void, now: () => number = () => performance.now()) {
    this.#tell = tell;
    this.#now = now;
  }

  /** Announces the URLs of the files that will be downloaded into the store before the model is uploaded. */
  expectDownloads(urls: Iterable<string>): void {
    for (const url of urls) {
      this.#downloads.set(url, 0);
    }
  }

  /**
   * Reports a stage. Events that come too soon after the previous one of the same kind are left out. `url` tells which of the expected
   * downloads it is: the store may have to give a file another name than its URL has.
   */
  at(status: Status, file: string, loaded: number, total: number, url = file): void {
    const progress = total > 0 ? Math.min(loaded / total, 1) : 1;
    const overall = this.#count(status, url, progress);
    const key = `${status} ${file}`;
    const before = this.#last.get(key);
    const time = this.#now();
    const early = before && time - before.time < EVENT_PAUSE && loaded < total;
    if (early || before?.loaded === loaded) {
      return;
    }
    this.#last.set(key, { time, loaded });
    this.#tell({ status, file, loaded, total, progress, overall });
  }

  /** The progress of the whole load. */
  #count(status: Status, url: string, progress: number): number {
    // Files that are in the store already also report a finished download. They take no time and do not count.
    if (status === "download" && this.#downloads.has(url)) {
      this.#downloads.set(url, progress);
    } else if (status === "upload") {
      this.#upload = progress;
    } else if (status === "compile") {
      this.#compile = progress;
    }
    const files = this.#downloads.size;
    const share = files > 0 ? SHARES.downloaded : SHARES.stored;
    const downloaded = [...this.#downloads.values()].reduce((sum, part) => sum + part, 0) / Math.max(files, 1);
    const sum = share.download * downloaded + share.upload * this.#upload + share.compile * this.#compile;
    // The last step of `compile` ends every load. Before it, rounding must not reach 1; and an upload that starts over with another
    // residency must not move the bar back.
    const now = status === "compile" && progress === 1 ? 1 : Math.min(sum, 0.999);
    this.#overall = Math.max(this.#overall, now);
    return this.#overall;
  }
}
