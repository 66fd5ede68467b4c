// Progress of long work, reported often enough for a bar and seldom enough to cost nothing.

export interface StoreProgress {
  /** What is being done: bytes are fetched, or stored bytes are checked. */
  status: "download" | "verify";
  file: string;
  loaded: number;
  /** Missing while the size is not known. */
  total?: number;
  /** From 0 to 1; 0 while the size is not known. */
  progress: number;
}

export type OnProgress = (progress: StoreProgress) => void;

const EVERY = 100;

export class ProgressMeter {
  readonly #status: StoreProgress["status"];
  readonly #file: string;
  readonly #report: OnProgress | undefined;
  #last = -Infinity;

  constructor(status: StoreProgress["status"], file: string, report: OnProgress | undefined) {
    this.#status = status;
    this.#file = file;
    this.#report = report;
  }

  /** Reports now and then; always when all is there. */
  at(loaded: number, total: number | undefined): void {
    if (!this.#report) return;
    const now = performance.now();
    if (loaded !== total && now - this.#last < EVERY) return;
    this.#last = now;
    this.#report({
      status: this.#status,
      file: this.#file,
      loaded,
      ...(total === undefined ? {} : { total }),
      progress: total ? loaded / total : 0,
    });
  }
}
