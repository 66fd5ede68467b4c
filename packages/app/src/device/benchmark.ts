// How fast a loaded model is here: tokens a second, read and written, as the conversation behind them grows.
//
// One conversation of its own grows from depth to depth, so each depth reads only what the one before had not. Writing is
// then repeated at that depth; each repetition sets the conversation back.

import type { Engine } from "rullama";
import { depths, summarise, type Summary } from "./statistics";

export interface BenchmarkOptions {
  /** Tokens written at each depth. */
  generated: number;
  repeats: number;
  signal: AbortSignal;
  onPoint: (points: readonly Point[], share: number) => void;
}

export interface Point {
  depth: number;
  /** Tokens written a second. */
  decode: Summary;
  /** Tokens read a second on the way to this depth; missing where too few were read to tell. */
  prompt?: number;
}

/** Below this many, the start of a pass outweighs the reading. */
const ENOUGH = 64;

export async function benchmark(engine: Engine, { generated, repeats, signal, onPoint }: BenchmarkOptions): Promise<Point[]> {
  const points: Point[] = [];
  const wanted = depths(engine.info.context, generated);
  const ids = prompt(Math.max(...wanted) + 1, engine.info.vocabulary);
  const session = engine.session();
  const options = { temperature: 0, maxTokens: generated, ignoreEos: true, signal };
  try {
    // The first pass of all makes what later ones find.
    await session.generate(ids.slice(0, 1), { ...options, maxTokens: 4 }).result();
    for (const [index, depth] of wanted.entries()) {
      const rates: number[] = [];
      let prompt: number | undefined;
      for (let repeat = 0; repeat < repeats; repeat++) {
        const { usage, timings } = await session.generate(ids.slice(0, depth + 1), options).result();
        const read = usage.promptTokens - usage.reusedTokens;
        if (repeat === 0 && read >= ENOUGH) {
          prompt = (read / timings.promptMs) * 1000;
        }
        // The first token comes with the prompt.
        rates.push((Math.max(1, usage.generatedTokens - 1) / timings.generateMs) * 1000);
        onPoint(points, (index + (repeat + 1) / repeats) / wanted.length);
      }
      points.push({ depth, decode: summarise(rates), ...(prompt === undefined ? {} : { prompt }) });
      onPoint(points, (index + 1) / wanted.length);
    }
    return points;
  } finally {
    await session.close().catch(() => {});
  }
}

/** Tokens without meaning, the same every time. What they are does not change how long they take. */
function prompt(length: number, vocabulary: number): number[] {
  const first = Math.min(1000, vocabulary >> 1);
  let state = 12345;
  return Array.from({ length }, () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return first + (state % Math.max(1, vocabulary - first - 1));
  });
}
