// What is under way until a model is ready: how far, how fast, how long still, and a way out.

import { button } from "../ui/button";
import { make, refill } from "../ui/dom";
import type { HostState, ModelHost } from "./host";
import { stageFacts, type Stage, type StageName } from "./stages";

const TITLES: Record<StageName, string> = {
  fetch: "Downloading",
  import: "Storing",
  download: "Downloading",
  verify: "Checking",
  upload: "Moving to the graphics processor",
  compile: "Preparing kernels",
};

/** A panel that follows the host until this loading is over. */
export function progressPanel(host: ModelHost): HTMLElement {
  const state = host.state as Extract<HostState, { kind: "busy" }>;
  const list = make("div", { class: "stages" });
  const overall = make("span", { class: "stage-percent" });
  const rows = new Map<StageName, ReturnType<typeof stageRow>>();
  const panel = make(
    "div",
    { class: "card progress-panel", role: "group", "aria-label": `Loading ${state.label}` },
    make("div", { class: "row between" }, make("h2", {}, `Loading ${state.label}`), overall),
    list,
    make(
      "div",
      { class: "row between" },
      make("span", { class: "muted small" }, state.keeps ? "If you stop, the download can be resumed later." : ""),
      button("Stop", () => host.cancel()),
    ),
  );
  const update = () => {
    overall.textContent = state.stages.length > 0 ? `${Math.floor(state.share * 100)} %` : "";
    if (state.stages.length === 0) {
      return refill(list, make("p", { class: "muted" }, "Looking at the file…"));
    }
    for (const stage of state.stages) {
      let row = rows.get(stage.name);
      if (!row) {
        if (rows.size === 0) {
          list.replaceChildren();
        }
        row = stageRow(stage);
        rows.set(stage.name, row);
        list.append(row.element);
      }
      row.update();
    }
  };
  const forgetProgress = host.progressed.on(update);
  // A halt is told by nobody: what was known before it is not known any more.
  const clock = setInterval(update, 1000);
  const forgetState = host.changed.on(() => {
    if (host.state !== state) {
      forgetProgress();
      forgetState();
      clearInterval(clock);
    }
  });
  update();
  return panel;
}

function stageRow(stage: Stage): { element: HTMLElement; update: () => void } {
  const bar = make("progress", { "aria-label": TITLES[stage.name], max: 1 });
  const facts = make("span", { class: "muted small" });
  const element = make(
    "div",
    { class: "stage" },
    make("span", {}, TITLES[stage.name]),
    bar,
    facts,
  );
  const update = () => {
    const { loaded, total } = stage;
    const done = total > 0 && loaded >= total;
    // Kernels are few and each takes its time: a bar that stands still would look like one that hangs.
    if (total > 0 && (done || stage.name !== "compile")) {
      bar.value = loaded / total;
    }
    facts.textContent = stageFacts(stage, performance.now());
    element.classList.toggle("done", done);
  };
  return { element, update };
}
