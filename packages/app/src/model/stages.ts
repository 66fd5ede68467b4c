// The stages of loading a model, and how far each is.

import { bytes, bytesPerSecond, timeLeft } from "../text/format";
import type { Rate } from "../text/rate";
import { keepsProjector, type ModelChoice } from "./choice";

export type StageName = "fetch" | "import" | "download" | "verify" | "upload" | "compile";

/** A stage in progress. */
export interface Stage {
  name: StageName;
  loaded: number;
  /** 0 while the total is unknown. */
  total: number;
  rate: Rate;
}

/** The relative durations of the stages, roughly. */
const WEIGHTS: Readonly<Record<StageName, number>> = { fetch: 12, download: 12, import: 4, verify: 2, upload: 4, compile: 2 };

/** The stages that loading a choice will have, as far as they are known in advance. */
export function plannedStages(choice: ModelChoice, on: "gpu" | "cpu"): StageName[] {
  const rest: StageName[] = on === "gpu" ? ["upload", "compile"] : ["compile"];
  if (choice.kind === "stored") {
    return keepsProjector(choice) ? ["import", ...rest] : rest;
  }
  const first = choice.kind === "address" ? (choice.keep ? "fetch" : "download") : choice.keep ? "import" : undefined;
  return first ? [first, ...rest] : rest;
}

/** The fraction of the whole load that is done, from 0 to 1. */
export function shareOf(stages: readonly Stage[], planned: readonly StageName[]): number {
  const names = new Set([...planned, ...stages.map(({ name }) => name)]);
  let done = 0;
  let all = 0;
  for (const name of names) {
    const stage = stages.find((one) => one.name === name);
    all += WEIGHTS[name];
    done += WEIGHTS[name] * (stage && stage.total > 0 ? Math.min(1, stage.loaded / stage.total) : 0);
  }
  return all === 0 ? 0 : done / all;
}

/** How far a stage is at a given time, with speed and remaining time where they are known. */
export function stageFacts({ name, loaded, total, rate }: Stage, now: number): string {
  if (name === "compile") {
    // It has few steps, and one of them may take as long as all the others.
    return "";
  }
  if (total === 0) {
    return joined(bytes(loaded), rate.bytesPerSecond(now));
  }
  const done = `${bytes(loaded)} of ${bytes(total)}`;
  return loaded < total ? joined(done, rate.bytesPerSecond(now), rate.secondsLeft(total, now)) : done;
}

function joined(done: string, speed?: number, left?: number): string {
  const words = [done, speed ? bytesPerSecond(speed) : "", left === undefined ? "" : timeLeft(left)];
  return words.filter((word) => word !== "").join(" · ");
}
