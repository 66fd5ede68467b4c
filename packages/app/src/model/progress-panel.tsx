// The progress of loading a model: how far, how fast, how long, and a button to stop.

import { useEffect, useState } from "preact/hooks";
import { Button, classes } from "../ui/button";
import { useParts } from "../ui/parts";
import { stageFacts, type Stage, type StageName } from "./stages";

const TITLES: Record<StageName, string> = {
  fetch: "Downloading",
  import: "Storing",
  download: "Downloading",
  verify: "Checking",
  upload: "Copying to the GPU",
  compile: "Compiling shaders",
};

export function ProgressPanel() {
  const { host } = useParts();
  useClock();
  const { state, progress } = host;
  if (state.kind !== "busy") {
    return null;
  }
  const { stages, share } = progress;
  return (
    <div class="card progress-panel" role="group" aria-label={`Loading ${state.label}`}>
      <div class="row between">
        <h2>{`Loading ${state.label}`}</h2>
        <span class="stage-percent">{stages.length > 0 ? `${Math.floor(share * 100)} %` : ""}</span>
      </div>
      <div class="stages">
        {stages.length === 0 && <p class="muted">Reading the file…</p>}
        {stages.map((stage) => (
          <StageRow key={stage.name} stage={stage} title={state.on === "cpu" && stage.name === "compile" ? "Reading the weights" : TITLES[stage.name]} />
        ))}
      </div>
      <div class="row between">
        <span class="muted small">{state.keeps ? "You can stop and resume the download later." : ""}</span>
        <Button onClick={() => host.cancel()}>Stop</Button>
      </div>
    </div>
  );
}

/** A model that is being checked before anything is downloaded or unloaded. */
export function CheckingPanel() {
  const { host } = useParts();
  const { checking } = host;
  if (!checking) {
    return null;
  }
  return (
    <div class="card progress-panel" role="group" aria-label={`Checking ${checking.label}`}>
      <div class="row between">
        <h2>{`Checking ${checking.label}`}</h2>
        <Button onClick={() => host.cancel()}>Stop</Button>
      </div>
      <progress aria-label="Checking" />
    </div>
  );
}

function StageRow({ stage, title }: { stage: Stage; title: string }) {
  const { name, loaded, total } = stage;
  const done = total > 0 && loaded >= total;
  // There are few shaders and each takes long: a bar that stands still would look stuck.
  const known = total > 0 && (done || name !== "compile");
  return (
    <div class={classes("stage", done && "done")}>
      <span>{title}</span>
      <progress aria-label={title} max={1} {...(known ? { value: loaded / total } : {})} />
      <span class="muted small">{stageFacts(stage, performance.now())}</span>
    </div>
  );
}

/** Renders every second: in a pause no event comes, but the remaining time is no longer known. */
function useClock(): void {
  const [, setTime] = useState(0);
  useEffect(() => {
    const clock = setInterval(() => setTime((time) => time + 1), 1000);
    return () => clearInterval(clock);
  }, []);
}
