// A curve over context depth as SVG: a line through the medians, a bar from minimum to maximum at each point.

import { count } from "../text/format";
import type { Point } from "./benchmark";
import { ticks } from "./statistics";

const [WIDTH, HEIGHT] = [640, 280];
const AREA = { left: 56, right: 16, top: 16, bottom: 40 };

export function Plot({ points }: { points: readonly Point[] }) {
  const values = points.filter(({ decode }) => Number.isFinite(decode.median));
  const deepest = Math.max(1, ...values.map(({ depth }) => depth));
  const marks = ticks(Math.max(...values.map(({ decode }) => decode.most), 0));
  const highest = marks.at(-1) ?? 1;
  const x = (depth: number) => AREA.left + (depth / deepest) * (WIDTH - AREA.left - AREA.right);
  const y = (rate: number) => HEIGHT - AREA.bottom - (rate / highest) * (HEIGHT - AREA.top - AREA.bottom);
  const label = values.map(({ depth, decode }) => `${decode.median.toFixed(1)} at ${depth}`).join(", ");
  return (
    <svg class="plot" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-label={`Tokens per second by context depth: ${label}`}>
      {marks.map((mark) => (
        <g key={mark}>
          <line class="grid" x1={AREA.left} x2={WIDTH - AREA.right} y1={y(mark)} y2={y(mark)} />
          <text class="axis" x={AREA.left - 8} y={y(mark) + 4} text-anchor="end">
            {mark}
          </text>
        </g>
      ))}
      {depthMarks(values.map(({ depth }) => depth), deepest).map((depth) => (
        <text key={depth} class="axis" x={x(depth)} y={HEIGHT - AREA.bottom + 18} text-anchor={depth === deepest ? "end" : depth === 0 ? "start" : "middle"}>
          {count(depth)}
        </text>
      ))}
      <text class="axis" x={(WIDTH + AREA.left) / 2} y={HEIGHT - 4} text-anchor="middle">
        tokens in the context
      </text>
      <text class="axis" x={AREA.left} y={10} text-anchor="start">
        tokens per second
      </text>
      {values.map(({ depth, decode }) => (
        <line key={depth} class="spread" x1={x(depth)} x2={x(depth)} y1={y(decode.least)} y2={y(decode.most)} />
      ))}
      <polyline class="curve" points={values.map(({ depth, decode }) => `${x(depth)},${y(decode.median)}`).join(" ")} />
      {values.map(({ depth, decode }) => (
        <circle key={depth} class="point" cx={x(depth)} cy={y(decode.median)} r={4}>
          <title>{`${decode.median.toFixed(1)} tokens per second at ${depth}`}</title>
        </circle>
      ))}
    </svg>
  );
}

/** The depths that get a label: those far enough apart. */
function depthMarks(depths: readonly number[], deepest: number): number[] {
  const shown: number[] = [];
  for (const depth of depths) {
    const last = shown.at(-1);
    if (last === undefined || (depth - last) / deepest > 0.08) {
      shown.push(depth);
    }
  }
  return shown;
}
