// Counts the work of a function, so that tests can tell linear growth from quadratic without a clock.
//
// Two counts are added: how often V8 entered each block of the watched files, by its own coverage counters, and how many characters
// and elements the built-in methods went over. The product has no part in this and pays nothing for it.

import { Session, type Profiler } from "node:inspector";

const session = new Session();
session.connect();
post("Profiler.enable");
// From here to the end of the process: V8 counts the blocks of functions that it compiles from now on, and of no others. So this module
// is imported before those whose work is counted.
post("Profiler.startPreciseCoverage", { callCount: true, detailed: true });

/** Asks V8, which answers at once. */
function post(method: string, parameters = {}): unknown {
  let result: unknown;
  session.post(method, parameters, (error, answer) => {
    if (error) {
      throw error;
    }
    result = answer;
  });
  return result;
}

/** Blocks that were entered in files whose address contains one of `files`, since this was last asked. */
function takeBlocks(files: readonly string[]): number {
  const { result } = post("Profiler.takePreciseCoverage") as Profiler.TakePreciseCoverageReturnType;
  const watched = result.filter(({ url }) => files.some((file) => url.includes(file)));
  const ranges = watched.flatMap(({ functions }) => functions).flatMap(({ ranges }) => ranges);
  return ranges.reduce((sum, { count }) => sum + count, 0);
}

/** The work of `run`, with the blocks of files whose address contains one of `files`. */
export function countWork(files: readonly string[], run: () => unknown): number {
  const work = { steps: 0 };
  takeBlocks(files);
  const restore = countMethods(work);
  try {
    run();
  } finally {
    restore();
  }
  const blocks = takeBlocks(files);
  if (blocks === 0) {
    throw new Error(`nothing of ${files.join(", ")} ran`);
  }
  return work.steps + blocks;
}

type Method = (this: never, ...rest: never[]) => unknown;

/** Adds what the built-in methods go over to `work`, until the function that it gives is called. */
function countMethods(work: { steps: number }): () => void {
  const undo: (() => void)[] = [];
  const wrap = (prototype: object, name: string, weigh: (self: never, given: unknown[], result: unknown, before: number) => number) => {
    const original = Reflect.get(prototype, name) as Method;
    const counted = function (this: { lastIndex?: number }, ...given: never[]): unknown {
      const before = this.lastIndex ?? 0;
      const result = Reflect.apply(original, this, given);
      work.steps += weigh(this as never, given, result, before);
      return result;
    };
    Object.defineProperty(prototype, name, { value: counted, configurable: true, writable: true });
    undo.push(() => Object.defineProperty(prototype, name, { value: original, configurable: true, writable: true }));
  };

  const indexOf = String.prototype.indexOf;
  const whole = (self: string) => self.length;
  for (const name of ["trim", "trimStart", "trimEnd", "split", "replace", "replaceAll"]) {
    wrap(String.prototype, name, whole);
  }
  wrap(String.prototype, "repeat", (_self, _given, result) => (result as string).length);
  // V8 copies nothing for a slice: it refers to the text that it is a part of.
  wrap(String.prototype, "slice", () => 1);
  // These compare many characters at a time.
  for (const name of ["startsWith", "endsWith"]) {
    wrap(String.prototype, name, (_self, [searched]) => String(searched).length / 64);
  }
  for (const name of ["indexOf", "includes"]) {
    wrap(String.prototype, name, (self: string, [searched, from = 0]) => {
      const found = indexOf.call(self, String(searched), from as number);
      return (found < 0 ? self.length : found) - (from as number);
    });
  }
  for (const name of ["slice", "concat"]) {
    wrap(Array.prototype, name, (_self, _given, result) => (result as unknown[]).length);
  }
  // What stands behind is moved.
  wrap(Array.prototype, "splice", (self: unknown[], [from]) => Math.max(1, self.length - Math.max(0, from as number)));
  for (const name of ["includes", "indexOf", "join"]) {
    wrap(Array.prototype, name, (self: unknown[]) => self.length);
  }
  // Every use of a pattern comes through here, also those of strings' methods.
  wrap(RegExp.prototype, "exec", (self: RegExp, [subject], result, before) => {
    const text = String(subject);
    const found = result as RegExpExecArray | null;
    const end = found ? found.index + found[0].length : self.sticky ? before + 1 : text.length;
    return self.sticky || self.global ? end - before : text.length;
  });
  return () => undo.reverse().forEach((again) => again());
}
