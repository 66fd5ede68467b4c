// Locks that tabs of one origin share, so that one downloads while the others wait, and nothing is removed
// under a reader.

import { StoreError, cancelled } from "./error.js";

export type LockMode = "exclusive" | "shared";
export type Release = () => void;

export interface StoreLocks {
  /** Takes the lock now, or gives undefined when it would have to wait. */
  attempt(name: string, mode: LockMode): Promise<Release | undefined>;
  /** Takes the lock, waiting for others to release it. */
  wait(name: string, mode: LockMode, signal?: AbortSignal): Promise<Release>;
}

// A lock that was released a moment ago, in another thread, may not be free here yet.
const GRACE = 2000;

/** Takes the lock if it is free or about to be; undefined when somebody keeps it. */
export async function takeSoon(locks: StoreLocks, name: string, mode: LockMode): Promise<Release | undefined> {
  const now = await locks.attempt(name, mode);
  if (now) return now;
  const limit = new AbortController();
  const timer = setTimeout(() => limit.abort(), GRACE);
  try {
    return await locks.wait(name, mode, limit.signal);
  } catch (error) {
    if (limit.signal.aborted) return undefined;
    throw error;
  } finally {
    clearTimeout(timer);
  }
}

/** Web Locks: held across tabs, and released by the browser when a tab goes away. */
export class WebLocks implements StoreLocks {
  attempt(name: string, mode: LockMode): Promise<Release | undefined> {
    return new Promise((resolve, reject) => {
      navigator.locks
        .request(name, { mode, ifAvailable: true }, (lock) => lock ? hold(resolve) : resolve(undefined))
        .catch((error: unknown) => reject(refused(error)));
    });
  }

  wait(name: string, mode: LockMode, signal?: AbortSignal): Promise<Release> {
    return new Promise((resolve, reject) => {
      navigator.locks
        .request(name, signal ? { mode, signal } : { mode }, () => hold(resolve))
        .catch((error: unknown) => reject(signal?.aborted ? cancelled("waiting for another tab") : refused(error)));
    });
  }
}

function refused(cause: unknown): StoreError {
  return new StoreError("storage.unavailable", `The browser does not allow this page to use locks: ${String(cause)}`, {}, { cause });
}

function hold(resolve: (release: Release) => void): Promise<void> {
  return new Promise((released) => resolve(() => released()));
}

/** Locks within one thread, for tests and for browsers without Web Locks. First come, first served. */
export class MemoryLocks implements StoreLocks {
  #held = new Map<string, { mode: LockMode; count: number }>();
  #waiting: { name: string; mode: LockMode; take: (release: Release) => void }[] = [];

  async attempt(name: string, mode: LockMode): Promise<Release | undefined> {
    const held = this.#held.get(name);
    const others = this.#waiting.some((waiter) => waiter.name === name);
    if (others || (held && (held.mode === "exclusive" || mode === "exclusive"))) return undefined;
    return this.#take(name, mode);
  }

  wait(name: string, mode: LockMode, signal?: AbortSignal): Promise<Release> {
    return new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(cancelled("waiting for another tab"));
      const waiter = { name, mode, take: resolve };
      this.#waiting.push(waiter);
      signal?.addEventListener("abort", () => {
        this.#waiting = this.#waiting.filter((other) => other !== waiter);
        reject(cancelled("waiting for another tab"));
      }, { once: true });
      this.#serve(name);
    });
  }

  #take(name: string, mode: LockMode): Release {
    this.#held.set(name, { mode, count: (this.#held.get(name)?.count ?? 0) + 1 });
    let released = false;
    return () => {
      if (released) return;
      released = true;
      const held = this.#held.get(name)!;
      held.count--;
      if (held.count === 0) this.#held.delete(name);
      this.#serve(name);
    };
  }

  #serve(name: string): void {
    for (;;) {
      const next = this.#waiting.find((waiter) => waiter.name === name);
      const held = this.#held.get(name);
      if (!next || (held && (held.mode === "exclusive" || next.mode === "exclusive"))) return;
      this.#waiting = this.#waiting.filter((waiter) => waiter !== next);
      next.take(this.#take(name, next.mode));
    }
  }
}
