// The Device page: a verdict first, then the self-test and the benchmark; technical details are folded.

import { Button, classes } from "../ui/button";
import { useParts } from "../ui/parts";
import { AdapterDetails } from "./adapter-details";
import { BenchmarkCard } from "./benchmark-card";
import { EngineDetails } from "./engine-details";
import { ExaminationCard } from "./examination-card";
import { GpuAdvice } from "./gpu-advice";
import { verdict } from "./verdict";

export function DeviceView() {
  const { support } = useParts();
  const { tone, title, text } = verdict(support, (navigator as { deviceMemory?: number }).deviceMemory);
  return (
    <section class="page" aria-label="Device">
      <h1>Device</h1>
      <p class="muted">What computes here, and how well.</p>
      <div class={classes("card device-verdict", tone)}>
        <h2>{title}</h2>
        <p class="muted">{text}</p>
        {support.kind === "yes" ? <AdapterDetails adapter={support.adapter} /> : <GpuAdvice lack={support.lack} />}
      </div>
      <ModelCard />
      {support.kind === "yes" && <ExaminationCard />}
      <BenchmarkCard />
    </section>
  );
}

function ModelCard() {
  const { host, go } = useParts();
  const { engine } = host;
  if (engine) {
    return <EngineDetails engine={engine} />;
  }
  return (
    <div class="card">
      <h2>Model</h2>
      <p class="muted">Load a model to see how much memory it uses and to measure its speed.</p>
      <div class="row">
        <Button kind="primary" onClick={() => go.models()}>
          Choose a model
        </Button>
      </div>
    </div>
  );
}
