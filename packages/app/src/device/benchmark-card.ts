// The benchmark on the page: start, stop, a curve, a table, the result as a file or to the server.

import type { ModelHost } from "../model/host";
import { LOG_BYTES, type Server } from "../model/server";
import { fileDate, tokensPerSecond } from "../text/format";
import { button } from "../ui/button";
import { confirm } from "../ui/dialog";
import { make, refill, saveFile } from "../ui/dom";
import { announce, notify, notifyError } from "../ui/notices";
import type { AdapterFacts } from "./adapter";
import { benchmark, type Point } from "./benchmark";
import { fullReport, shortReport, type Measured } from "./report";
import { plot } from "./plot";

const GENERATED = 32;
const REPEATS = 3;

export class BenchmarkCard {
  readonly element = make("div", { class: "card" });
  readonly #host: ModelHost;
  readonly #adapter: AdapterFacts | undefined;
  readonly #server: Server;
  readonly #bar = make("progress", { max: 1, value: 0, "aria-label": "Benchmark", hidden: true });
  readonly #result = make("div");
  readonly #buttons = make("div", { class: "row" });
  #running: AbortController | undefined;
  #measured: Measured | undefined;

  constructor(host: ModelHost, adapter: AdapterFacts | undefined, server: Server) {
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
    this.element.hidden = engine === undefined && this.#measured === undefined;
    refill(
      this.#buttons,
      this.#running
        ? button("Stop", () => this.#running?.abort())
        : button(this.#measured ? "Run again" : "Run the benchmark", () => void this.#run(), { kind: "primary", disabled: !engine }),
      this.#measured && !this.#running && button("Save as JSON", () => this.#save(), { icon: "export" }),
      this.#measured && !this.#running && this.#server.ours && button("Send to this server", () => void this.#send()),
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
    this.#measured = undefined;
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
      this.#measured = {
        measuredAt: new Date().toISOString(),
        browser: navigator.userAgent,
        adapter: this.#adapter,
        model: engine.info,
        generated: GENERATED,
        repeats: REPEATS,
        points,
      };
      announce("The benchmark is done");
    } catch (error) {
      notifyError(error);
    }
    this.#running = undefined;
    this.update();
  }

  #save(): void {
    saveFile(`rullama-benchmark-${fileDate(Date.now())}.json`, new Blob([fullReport(this.#measured as Measured)], { type: "application/json" }));
  }

  async #send(): Promise<void> {
    const text = shortReport(this.#measured as Measured, LOG_BYTES);
    const shown = make("div", {}, make("p", {}, "Exactly this goes to the server that brought this page, and nowhere else:"), make("pre", { class: "preview", tabindex: 0 }, text));
    if (!(await confirm("Send the result?", shown, "Send", "primary"))) {
      return;
    }
    try {
      await this.#server.log("benchmark", text);
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
