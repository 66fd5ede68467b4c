// The benchmark on the page: start, stop, a curve, a table, the result as a file or to the server.

import type { ModelHost } from "../model/host";
import { sendLog } from "../model/server";
import { fileDate, tokensPerSecond } from "../text/format";
import { button } from "../ui/button";
import { confirm } from "../ui/dialog";
import { make, refill, saveFile } from "../ui/dom";
import { announce, notify, notifyError } from "../ui/notices";
import type { AdapterFacts } from "./adapter";
import { benchmark, type Point } from "./benchmark";
import { plot } from "./plot";

const GENERATED = 32;
const REPEATS = 3;

export class BenchmarkCard {
  readonly element = make("div", { class: "card" });
  readonly #host: ModelHost;
  readonly #adapter: AdapterFacts | undefined;
  readonly #server: boolean;
  readonly #bar = make("progress", { max: 1, value: 0, "aria-label": "Benchmark", hidden: true });
  readonly #result = make("div");
  readonly #buttons = make("div", { class: "row" });
  #running: AbortController | undefined;
  #report: string | undefined;

  constructor(host: ModelHost, adapter: AdapterFacts | undefined, server: boolean) {
    this.#host = host;
    this.#adapter = adapter;
    this.#server = server;
    this.element.append(
      make("h2", {}, "Benchmark"),
      make("p", { class: "muted" }, "Measures how fast the loaded model reads and writes, and what a long conversation costs. Keep this tab in front."),
      this.#buttons,
      this.#bar,
      this.#result,
    );
  }

  update(): void {
    const engine = this.#host.engine;
    this.element.hidden = engine === undefined && this.#report === undefined;
    refill(
      this.#buttons,
      this.#running
        ? button("Stop", () => this.#running?.abort())
        : button(this.#report ? "Run again" : "Run the benchmark", () => void this.#run(), { kind: "primary", disabled: !engine }),
      this.#report && !this.#running && button("Save as JSON", () => this.#save(), { icon: "export" }),
      this.#report && !this.#running && this.#server && button("Send to this server", () => void this.#send()),
    );
    this.#bar.hidden = !this.#running;
  }

  async #run(): Promise<void> {
    const engine = this.#host.engine;
    if (!engine) {
      return;
    }
    const controller = new AbortController();
    this.#running = controller;
    this.#report = undefined;
    this.#bar.value = 0;
    refill(this.#result);
    this.update();
    try {
      const points = await benchmark(engine, {
        generated: GENERATED,
        repeats: REPEATS,
        signal: controller.signal,
        onPoint: (sofar, share) => {
          this.#bar.value = share;
          if (sofar.length > 0) {
            refill(this.#result, ...resultNodes(sofar));
          }
        },
      });
      this.#report = report(points, engine.info, this.#adapter);
      announce("The benchmark is done");
    } catch (error) {
      notifyError(error);
    }
    this.#running = undefined;
    this.update();
  }

  #save(): void {
    saveFile(`rullama-benchmark-${fileDate(Date.now())}.json`, new Blob([this.#report as string], { type: "application/json" }));
  }

  async #send(): Promise<void> {
    const text = this.#report as string;
    const shown = make("div", {}, make("p", {}, "Exactly this goes to the server that brought this page, and nowhere else:"), make("pre", { class: "preview", tabindex: 0 }, text));
    if (!(await confirm("Send the result?", shown, "Send", "primary"))) {
      return;
    }
    try {
      await sendLog("benchmark", text);
      notify("Sent. Thank you.");
    } catch (error) {
      notifyError(error);
    }
  }
}

function resultNodes(points: readonly Point[]): Element[] {
  const rows = points.map(({ depth, decode, prompt }) =>
    make(
      "tr",
      {},
      make("th", { scope: "row" }, String(depth)),
      make("td", {}, tokensPerSecond(decode.median)),
      make("td", {}, `${decode.least.toFixed(1)} – ${decode.most.toFixed(1)}`),
      make("td", {}, prompt === undefined ? "–" : tokensPerSecond(prompt)),
    ),
  );
  return [
    plot(points),
    make(
      "table",
      { class: "results" },
      make("thead", {}, make("tr", {}, ...["Depth", "Writing", "Least – most", "Reading"].map((name) => make("th", { scope: "col" }, name)))),
      make("tbody", {}, ...rows),
    ),
  ];
}

/** Everything that explains the numbers, and nothing about the person. */
function report(points: readonly Point[], info: object, adapter: AdapterFacts | undefined): string {
  const result = {
    format: "rullama-benchmark",
    version: 1,
    measuredAt: new Date().toISOString(),
    browser: navigator.userAgent,
    adapter,
    model: info,
    generated: GENERATED,
    repeats: REPEATS,
    points,
  };
  return JSON.stringify(result, null, 2);
}
