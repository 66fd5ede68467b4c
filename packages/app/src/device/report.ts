// The result of a benchmark as text: complete for a file, short for the server's log.

import type { EngineInfo } from "rullama";
import type { AdapterFacts } from "./adapter";
import type { Point } from "./benchmark";

/** Everything that explains the numbers, and nothing about the user. */
export interface Measured {
  measuredAt: string;
  browser: string;
  adapter: AdapterFacts | undefined;
  model: EngineInfo;
  /** Tokens generated at each depth. */
  generated: number;
  repeats: number;
  points: readonly Point[];
}

const HEAD = { format: "rullama-benchmark", version: 1 };

export function fullReport(measured: Measured): string {
  return JSON.stringify({ ...HEAD, ...measured }, null, 2);
}

/**
 * Leaves out the lists of converted tensors and features, and rounds numbers to four digits. If the text is still longer than
 * `most` bytes, it has as many points as fit.
 */
export function shortReport({ adapter, model, points, ...rest }: Measured, most: number): string {
  const { conversions, ...info } = model;
  const facts = adapter && { name: adapter.name, fallback: adapter.fallback, limits: adapter.limits };
  const short = (count: number) =>
    JSON.stringify(
      { ...HEAD, summary: true, ...rest, adapter: facts, model: { ...info, conversions: conversions.length }, points: points.slice(0, count) },
      (_, value: unknown) => (typeof value === "number" && !Number.isInteger(value) ? Number(value.toPrecision(4)) : value),
      1,
    );
  let count = points.length;
  while (count > 0 && new TextEncoder().encode(short(count)).length > most) {
    count -= 1;
  }
  return short(count);
}
