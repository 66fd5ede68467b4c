// The loaded model: whether it computes correctly, how much memory it uses, and technical details.

import { useState } from "preact/hooks";
import type { Engine, KernelUse } from "rullama";
import { bytes, count, parameters } from "../text/format";
import { FactsList } from "../ui/facts";
import { BackendLine } from "./backend-line";

export function EngineDetails({ engine }: { engine: Engine }) {
  const { info } = engine;
  const { gpu, memory, fallbacks, warnings, conversions } = info;
  const sound = fallbacks.length === 0;
  return (
    <div class="card">
      <h2>{info.name}</h2>
      <BackendLine info={info} />
      {gpu && (
        <p class={sound ? "verdict good" : "verdict fair"}>
          {sound ? "The self-test passed: this GPU computes correct results." : "The self-test found wrong results. rullama works around them:"}
        </p>
      )}
      {!sound && <TextList texts={fallbacks} />}
      {warnings.length > 0 && (
        <>
          <p class="verdict fair">The model's file differs from what rullama expects:</p>
          <TextList texts={warnings} />
        </>
      )}
      <FactsList
        rows={[
          ["Context", `${count(info.context)} of ${count(info.trainedContext)} tokens`],
          [gpu ? "GPU memory" : "Memory", bytes(memory.total)],
        ]}
      />
      <details class="technical">
        <summary>Model details</summary>
        <FactsList
          rows={[
            ["Architecture", info.architecture],
            ["Parameters", parameters(info.parameters)],
            ["Layers", String(info.layers)],
            ["Vocabulary", count(info.vocabulary)],
            ["File size", bytes(info.bytes)],
            [gpu ? "GPU memory" : "Memory", `weights ${bytes(memory.weights)}, KV cache ${bytes(memory.caches)}, scratch ${bytes(memory.scratch)}, staging ${bytes(memory.staging)}`],
            ["Subgroups", gpu ? subgroups(gpu.subgroups) : undefined],
            ["Half precision (f16)", gpu ? (gpu.halfPrecision ? "used" : "not used") : undefined],
          ]}
        />
        {gpu && <Kernels engine={engine} />}
        {conversions.length > 0 && (
          <details>
            <summary>{`${count(conversions.length)} tensors were converted while loading`}</summary>
            <ul class="small">
              {conversions.map(({ tensor, from, to }) => (
                <li key={tensor}>{`${tensor}: ${from} → ${to}`}</li>
              ))}
            </ul>
          </details>
        )}
      </details>
    </div>
  );
}

function TextList({ texts }: { texts: readonly string[] }) {
  return (
    <ul>
      {texts.map((text) => (
        <li key={text}>{text}</li>
      ))}
    </ul>
  );
}

function subgroups(sizes: [number, number] | null): string {
  if (!sizes) {
    return "not used";
  }
  return sizes[0] === sizes[1] ? `${sizes[0]} threads` : `${sizes[0]} to ${sizes[1]} threads`;
}

/** The shaders that the model uses, read when the user unfolds them. */
function Kernels({ engine }: { engine: Engine }) {
  const [kernels, setKernels] = useState<KernelUse[]>([]);
  // If the model is unloaded meanwhile, this component goes with it.
  const read = () => void engine.kernels().then(setKernels, () => {});
  return (
    <details onToggle={read}>
      <summary>Kernels</summary>
      <ul class="small">
        {kernels.map(({ step, rows, kernel, count: times }) => (
          <li key={`${step} ${rows} ${kernel}`}>
            {`${step === "decode" ? "generation" : `prompt of ${rows} tokens`}: ${times} × `}
            <code>{kernel}</code>
          </li>
        ))}
      </ul>
    </details>
  );
}
