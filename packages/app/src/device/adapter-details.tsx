// What the browser reports about the GPU, in technical terms.

import { binaryBytes, count } from "../text/format";
import { FactsList } from "../ui/facts";
import { LIMITS, type AdapterFacts } from "./adapter";

export function AdapterDetails({ adapter: { name, fallback, features, limits } }: { adapter: AdapterFacts }) {
  const sized = (limit: string, value: number) => (/Size$/.test(limit) ? binaryBytes(value) : count(value));
  return (
    <details class="technical">
      <summary>GPU details</summary>
      <FactsList
        rows={[
          ["Name", name || "not reported by the browser"],
          ["Kind", fallback ? "emulated on the CPU" : undefined],
          ["Half precision (f16)", features.includes("shader-f16") ? "yes" : "no"],
          ["Subgroups", features.includes("subgroups") ? "yes" : "no"],
          ...LIMITS.map(([limit, label]): [string, string | undefined] => {
            const value = limits[limit];
            return [label, value === undefined ? undefined : sized(limit, value)];
          }),
          ["Memory of this device", deviceMemory()],
          ["CPU cores", navigator.hardwareConcurrency ? String(navigator.hardwareConcurrency) : undefined],
          [
            "WebGPU features",
            <span class="tags">
              {features.map((feature) => (
                <code key={feature}>{feature}</code>
              ))}
            </span>,
          ],
        ]}
      />
    </details>
  );
}

/** Browsers round it, and report 8 at most. */
function deviceMemory(): string | undefined {
  const size = (navigator as { deviceMemory?: number }).deviceMemory;
  return size === undefined ? undefined : size >= 8 ? "8 GB or more" : `about ${size} GB`;
}
