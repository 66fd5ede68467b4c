// Progress of long operations, reported often enough for a progress bar and seldom enough to cost nothing.

export interface StoreProgress {
  /** `download`: bytes are fetched or imported. `verify`: stored bytes are checked. */
  status: "download" | "verify";
  file: string;
  loaded: number;
  /** Missing while the size is not known. */
  total?: number;
  /** The fraction of this file that is done, from 0 to 1; 0 while the size is not known. */
  progress: number;
  /** The fraction of the whole call that is done: of all its files. It never goes down, and ends at 1. */
  overall: number;
}

export type OnProgress = (progress: StoreProgress) => void;

const EVERY = 100;

export class ProgressMeter {
  readonly #status: StoreProgress["status"];
  readonly #file: string;
  readonly #report: OnProgress | undefined;
  #last = -Infinity;
  #overall = 0;

  constructor(status: StoreProgress["status"], file: string, report: OnProgress | undefined) {
    this.#status = status;
    this.#file = file;
    this.#report = report;
  }

  /** Reports progress, but not too often; always when everything is done. */
  at(loaded: number, total: number | undefined): void {
    if (!this.#report) return;
    const progress = total ? loaded / total : 0;
    // A download that starts over because its file changed does not move the bar back.
    this.#overall = Math.max(this.#overall, progress);
    const now = performance.now();
    if (loaded !== total && now - this.#last < EVERY) return;
    this.#last = now;
    this.#report({
      status: this.#status,
      file: this.#file,
      loaded,
      ...(total === undefined ? {} : { total }),
      progress,
      overall: this.#overall,
    });
  }
}

/** The progress of one file among several that are processed one after another, as progress of them all. */
export function amongSeveral(report: OnProgress | undefined, index: number, count: number): OnProgress | undefined {
  return report && ((event) => report({ ...event, overall: (index + event.overall) / count }));
}
