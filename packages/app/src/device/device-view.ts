// The Device page: what the browser and the engine say of this device, and how fast it is.

import type { Engine } from "rullama";
import type { ModelHost } from "../model/host";
import type { Server } from "../model/server";
import { binaryBytes, bytes, count, parameters } from "../text/format";
import { button } from "../ui/button";
import { make, refill, type Child } from "../ui/dom";
import { LIMITS, type AdapterFacts, type Support } from "./adapter";
import { BenchmarkCard } from "./benchmark-card";
import { ExaminationCard } from "./examination-card";

export class DeviceView {
  readonly element: HTMLElement;
  readonly #host: ModelHost;
  readonly #support: Support;
  readonly #model = make("div");
  readonly #benchmark: BenchmarkCard;
  readonly #toModels: () => void;

  constructor(host: ModelHost, support: Support, server: Server, toModels: () => void) {
    this.#host = host;
    this.#support = support;
    this.#toModels = toModels;
    const adapter = support.kind === "yes" ? support.adapter : undefined;
    this.#benchmark = new BenchmarkCard(host, adapter, server);
    this.element = make(
      "section",
      { class: "page", "aria-label": "Device" },
      make("h1", {}, "Device"),
      make("p", { class: "muted" }, "What this browser can do, as far as it says."),
      this.#browserCard(),
      support.kind === "yes" && new ExaminationCard().element,
      this.#model,
      this.#benchmark.element,
    );
    host.changed.on(() => this.update());
    server.changed.on(() => this.#benchmark.update());
    this.update();
  }

  update(): void {
    const engine = this.#host.engine;
    refill(this.#model, engine ? engineCard(engine) : this.#noModel());
    this.#benchmark.update();
  }

  #noModel(): HTMLElement {
    return make(
      "div",
      { class: "card" },
      make("h2", {}, "Model"),
      make("p", { class: "muted" }, "With a model loaded, this page shows what it takes of this device, which kernels it uses, and how fast it is."),
      make("div", { class: "row" }, button("Choose a model", this.#toModels, { kind: "primary" })),
    );
  }

  #browserCard(): HTMLElement {
    const support = this.#support;
    if (support.kind === "no") {
      return make("div", { class: "card" }, make("h2", {}, "Graphics processor"), make("p", {}, "None that this page may use."));
    }
    return adapterCard(support.adapter);
  }
}

function adapterCard({ name, fallback, features, limits }: AdapterFacts): HTMLElement {
  const sized = (limit: string, value: number) => (/Size$/.test(limit) ? binaryBytes(value) : count(value));
  return make(
    "div",
    { class: "card" },
    make("h2", {}, "Graphics processor"),
    facts(
      ["Name", name || "the browser keeps it to itself"],
      fallback ? ["Kind", "emulated by the processor; slow"] : undefined,
      ["Half precision", features.includes("shader-f16") ? "yes" : "no"],
      ["Subgroups", features.includes("subgroups") ? "yes" : "no"],
      ...LIMITS.flatMap(([limit, label]): [string, string][] => {
        const value = limits[limit];
        return value === undefined ? [] : [[label, sized(limit, value)]];
      }),
      ["Memory of this device", deviceMemory()],
      ["Processor cores", navigator.hardwareConcurrency ? String(navigator.hardwareConcurrency) : undefined],
    ),
    make("details", {}, make("summary", {}, `All ${features.length} features`), make("p", { class: "tags" }, ...features.map((feature) => make("code", {}, feature)))),
  );
}

function engineCard(engine: Engine): HTMLElement {
  const { info } = engine;
  const { gpu, memory, fallbacks, warnings, conversions } = info;
  const sound = fallbacks.length === 0;
  return make(
    "div",
    { class: "card" },
    make("h2", {}, "Model"),
    make(
      "p",
      { class: sound ? "verdict good" : "verdict fair" },
      sound ? "The self-test passed: every kernel calculates as it should." : "The self-test found wrong results; these are done in a safer way:",
    ),
    !sound && make("ul", {}, ...fallbacks.map((fallback) => make("li", {}, fallback))),
    warnings.length > 0 && make("p", { class: "verdict fair" }, "The model's file is not quite as expected:"),
    warnings.length > 0 && make("ul", {}, ...warnings.map((warning) => make("li", {}, warning))),
    facts(
      ["Model", info.name],
      ["Architecture", info.architecture],
      ["Parameters", parameters(info.parameters)],
      ["Layers", String(info.layers)],
      ["Vocabulary", count(info.vocabulary)],
      ["Context", `${count(info.context)} of ${count(info.trainedContext)} tokens`],
      ["Size of the file", bytes(info.bytes)],
      ["Graphics memory", `${bytes(memory.total)}: weights ${bytes(memory.weights)}, conversation ${bytes(memory.caches)}, scratch ${bytes(memory.scratch)}, loading ${bytes(memory.staging)}`],
      ["Subgroups", gpu.subgroups ? (gpu.subgroups[0] === gpu.subgroups[1] ? `${gpu.subgroups[0]} lanes` : `${gpu.subgroups[0]} to ${gpu.subgroups[1]} lanes`) : "not used"],
      ["Half precision", gpu.halfPrecision ? "used" : "not used"],
    ),
    kernelList(engine),
    conversions.length > 0 &&
      make(
        "details",
        {},
        make("summary", {}, `${conversions.length} tensors were converted while loading`),
        make("ul", { class: "small" }, ...conversions.map(({ tensor, from, to }) => make("li", {}, `${tensor}: ${from} to ${to}`))),
      ),
  );
}

/** The kernels that the model uses, asked for when somebody wants to see them. */
function kernelList(engine: Engine): HTMLElement {
  const list = make("ul", { class: "small" });
  const show = async () => {
    const kernels = await engine.kernels();
    refill(list, ...kernels.map(({ step, rows, kernel, count }) => make("li", {}, `${step === "decode" ? "writing" : `reading ${rows} tokens`}: ${count} × `, make("code", {}, kernel))));
  };
  const details = make("details", {}, make("summary", {}, "Kernels"), list);
  // A model that went meanwhile takes its card with it.
  details.addEventListener("toggle", () => void show().catch(() => {}), { once: true });
  return details;
}

/** Rounded by browsers, and never more than 8: what they say is a lower bound. */
function deviceMemory(): string | undefined {
  const size = (navigator as { deviceMemory?: number }).deviceMemory;
  return size === undefined ? undefined : size >= 8 ? "8 GB or more" : `about ${size} GB`;
}

function facts(...rows: ([string, string | undefined] | undefined)[]): HTMLElement {
  const known = rows.filter((row): row is [string, string] => row?.[1] !== undefined);
  return make("dl", { class: "facts-list" }, ...known.flatMap(([name, value]): Child[] => [make("dt", {}, name), make("dd", {}, value)]));
}
