// A curve over depth, drawn as SVG: medians as a line, least to most as a bar at each point.

import { count } from "../text/format";
import { makeSvg } from "../ui/dom";
import type { Point } from "./benchmark";
import { ticks } from "./statistics";

const [WIDTH, HEIGHT] = [640, 280];
const AREA = { left: 56, right: 16, top: 16, bottom: 40 };

export function plot(points: readonly Point[]): SVGElement {
  const values = points.filter(({ decode }) => Number.isFinite(decode.median));
  const deepest = Math.max(1, ...values.map(({ depth }) => depth));
  const marks = ticks(Math.max(...values.map(({ decode }) => decode.most), 0));
  const highest = marks.at(-1) ?? 1;
  const x = (depth: number) => AREA.left + (depth / deepest) * (WIDTH - AREA.left - AREA.right);
  const y = (rate: number) => HEIGHT - AREA.bottom - (rate / highest) * (HEIGHT - AREA.top - AREA.bottom);
  const label = values.map(({ depth, decode }) => `${decode.median.toFixed(1)} at ${depth}`).join(", ");
  return makeSvg(
    "svg",
    { class: "plot", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": `Tokens a second over context depth: ${label}` },
    ...marks.flatMap((mark) => [
      makeSvg("line", { class: "grid", x1: AREA.left, x2: WIDTH - AREA.right, y1: y(mark), y2: y(mark) }),
      makeSvg("text", { class: "axis", x: AREA.left - 8, y: y(mark) + 4, "text-anchor": "end" }, String(mark)),
    ]),
    ...depthMarks(values.map(({ depth }) => depth), deepest).map((depth) =>
      makeSvg("text", { class: "axis", x: x(depth), y: HEIGHT - AREA.bottom + 18, "text-anchor": depth === deepest ? "end" : depth === 0 ? "start" : "middle" }, count(depth)),
    ),
    makeSvg("text", { class: "axis", x: (WIDTH + AREA.left) / 2, y: HEIGHT - 4, "text-anchor": "middle" }, "tokens already in the conversation"),
    makeSvg("text", { class: "axis", x: AREA.left, y: 10, "text-anchor": "start" }, "tokens a second"),
    ...values.map(({ depth, decode }) => makeSvg("line", { class: "spread", x1: x(depth), x2: x(depth), y1: y(decode.least), y2: y(decode.most) })),
    makeSvg("polyline", { class: "curve", points: values.map(({ depth, decode }) => `${x(depth)},${y(decode.median)}`).join(" ") }),
    ...values.map(({ depth, decode }) =>
      makeSvg("circle", { class: "point", cx: x(depth), cy: y(decode.median), r: 4 }, makeSvg("title", {}, `${decode.median.toFixed(1)} tokens a second at ${depth}`)),
    ),
  );
}

/** The depths that get a number: those far enough from each other. */
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
