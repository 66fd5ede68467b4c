// The self-test on the page: each kind of kernel against a known case, and how fast memory is read. Needs no model.

import { examine, type DeviceReport } from "rullama";
import { bytesPerSecond } from "../text/format";
import { button } from "../ui/button";
import { make, refill } from "../ui/dom";
import { errorBox } from "../ui/error-box";
import { announce } from "../ui/notices";

export class ExaminationCard {
  readonly element = make("div", { class: "card" });
  readonly #buttons = make("div", { class: "row" });
  readonly #bar = make("progress", { "aria-label": "Self-test", hidden: true });
  readonly #result = make("div");
  #running: AbortController | undefined;

  constructor() {
    this.element.append(
      make("h2", {}, "Self-test"),
      make("p", { class: "muted" }, "Runs every kind of kernel against a known case and measures how fast memory is read. Loading a model tests the kernels, too."),
      this.#buttons,
      this.#bar,
      this.#result,
    );
    this.#update("Run the self-test");
  }

  #update(label: string): void {
    refill(
      this.#buttons,
      this.#running ? button("Stop", () => this.#running?.abort()) : button(label, () => void this.#run(), { kind: "primary" }),
    );
    this.#bar.hidden = !this.#running;
  }

  async #run(): Promise<void> {
    const controller = new AbortController();
    this.#running = controller;
    refill(this.#result);
    this.#update("");
    try {
      const report = await examine({ signal: controller.signal });
      refill(this.#result, ...reportNodes(report));
      announce(verdict(report));
    } catch (error) {
      refill(this.#result, !controller.signal.aborted && errorBox(error, {}));
    } finally {
      this.#running = undefined;
      this.#update("Run it again");
    }
  }
}

function verdict({ selfTests }: DeviceReport): string {
  const failed = selfTests.filter(({ passed }) => !passed).length;
  return failed === 0 ? `All ${selfTests.length} self-tests passed.` : `${failed} of ${selfTests.length} self-tests failed.`;
}

function reportNodes(report: DeviceReport): HTMLElement[] {
  const { selfTests, fallbacks, bandwidth } = report;
  const sound = selfTests.every(({ passed }) => passed);
  return [
    make("p", { class: sound ? "verdict good" : "verdict fair" }, verdict(report)),
    make("p", {}, `Memory is read at ${bytesPerSecond(bandwidth)}.`),
    ...fallbacks.map((fallback) => make("p", { class: "verdict fair" }, `Done in a safer way: ${fallback}`)),
    make(
      "details",
      { open: !sound },
      make("summary", {}, "Each of them"),
      make("ul", { class: "small" }, ...selfTests.map(({ name, passed, detail }) => make("li", {}, passed ? `${name}: passed` : `${name}: failed, ${detail}`))),
    ),
  ];
}
