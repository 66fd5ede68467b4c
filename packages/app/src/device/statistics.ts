// Statistics of repeated measurements.

export interface Summary {
  count: number;
  median: number;
  mean: number;
  least: number;
  most: number;
  /** Standard deviation of the sample; 0 for a single value. */
  deviation: number;
}

export function summarise(values: readonly number[]): Summary {
  const sorted = values.filter(Number.isFinite).sort((a, b) => a - b);
  const count = sorted.length;
  if (count === 0) {
    return { count, median: Number.NaN, mean: Number.NaN, least: Number.NaN, most: Number.NaN, deviation: Number.NaN };
  }
  const at = (index: number) => sorted[index] as number;
  const middle = count >> 1;
  const mean = sorted.reduce((sum, value) => sum + value, 0) / count;
  const squares = sorted.reduce((sum, value) => sum + (value - mean) ** 2, 0);
  return {
    count,
    median: count % 2 === 1 ? at(middle) : (at(middle - 1) + at(middle)) / 2,
    mean,
    least: at(0),
    most: at(count - 1),
    deviation: count > 1 ? Math.sqrt(squares / (count - 1)) : 0,
  };
}

/** The depths to measure: 0, then 512 and its doubles that leave room for the generated tokens. */
export function depths(context: number, generated: number): number[] {
  const found = [0];
  for (let depth = 512; depth + generated + 1 <= context; depth *= 2) {
    found.push(depth);
  }
  // In a small context, two more depths show whether depth matters.
  if (found.length === 1) {
    const half = Math.floor((context - generated - 1) / 2);
    if (half >= 16) {
      found.push(half, half * 2);
    }
  }
  return found;
}

/** Round numbers from 0 to at least `most`, for an axis. */
export function ticks(most: number, wanted = 5): number[] {
  if (!(most > 0) || !Number.isFinite(most)) {
    return [0, 1];
  }
  const rough = most / wanted;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = ([1, 2, 2.5, 5, 10].find((factor) => factor * power >= rough) ?? 10) * power;
  const count = Math.ceil(most / step - 1e-9);
  return Array.from({ length: count + 1 }, (_, index) => Number((index * step).toPrecision(12)));
}
