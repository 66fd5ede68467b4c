// The speed of the loaded model: tokens per second, read and generated, at growing context depths.
//
// One session grows from depth to depth, so each depth only reads the tokens that the previous one had not. Generation is then
// repeated at that depth; each repetition resets the session to it.

import type { Engine } from "rullama";
import { depths, summarise, type Summary } from "./statistics";

export interface BenchmarkOptions {
  /** Tokens generated at each depth. */
  generated: number;
  repeats: number;
  signal: AbortSignal;
  onPoint: (points: readonly Point[], share: number) => void;
}

export interface Point {
  depth: number;
  /** Generated tokens per second. */
  decode: Summary;
  /** Prompt tokens per second; missing if too few were read to measure. */
  prompt?: number;
}

/** With fewer tokens, the fixed cost of a pass dominates. */
const ENOUGH = 64;

export async function benchmark(engine: Engine, { generated, repeats, signal, onPoint }: BenchmarkOptions): Promise<Point[]> {
  const points: Point[] = [];
  const wanted = depths(engine.info.context, generated);
  const ids = prompt(Math.max(...wanted) + 1, engine.info.vocabulary);
  const session = engine.session();
  const options = { temperature: 0, maxTokens: generated, ignoreEos: true, signal };
  try {
    // The first pass allocates and compiles; it is not measured.
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
        // The prompt pass computes the first token.
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

/** Random tokens, the same every time. Their values do not affect the speed. */
function prompt(length: number, vocabulary: number): number[] {
  const first = Math.min(1000, vocabulary >> 1);
  let state = 12345;
  return Array.from({ length }, () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return first + (state % Math.max(1, vocabulary - first - 1));
  });
}
