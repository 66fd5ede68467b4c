// The Models page: what runs now, and every way to another model.

import type { StoreSpace } from "rullama";
import { bytes, count, parameters } from "../text/format";
import { button } from "../ui/button";
import { facts, make, pickFiles, refill, type Child } from "../ui/dom";
import { errorBox } from "../ui/error-box";
import { notifyError } from "../ui/notices";
import { DEMO_NAME, isDemo, isServedDemo } from "./demo";
import { demoRow } from "./demo-row";
import type { Failure, HostState, ModelChoice, ModelHost } from "./host";
import { loadSteps } from "./load-steps";
import { groupStored, type StoredGroup } from "./parts";
import { progressPanel } from "./progress-panel";
import type { Server, ServerModel } from "./server";
import { storedRow, type StoredRowOptions } from "./stored-row";

export interface ModelsNavigation {
  chat(): void;
  device(): void;
  settings(): void;
}

export class ModelsView {
  readonly element: HTMLElement;
  readonly #host: ModelHost;
  readonly #server: Server;
  readonly #go: ModelsNavigation;
  readonly #now = make("div", { class: "now" });
  readonly #demo = make("ul", { class: "rows", "aria-label": "Demo model" });
  readonly #stored = make("div");
  readonly #offered = make("div");
  readonly #beginning = make("div");
  /** Whether there is any but the demo model. Taken for granted until the store has said otherwise. */
  #anyStored = true;
  /** The number of the latest look at the store. */
  #look = 0;
  /** The loading whose progress is shown. */
  #loading: HostState | undefined;
  readonly #address: HTMLInputElement;
  readonly #keepAddress: HTMLInputElement;
  readonly #keepFile: HTMLInputElement;

  constructor(host: ModelHost, server: Server, go: ModelsNavigation) {
    this.#host = host;
    this.#server = server;
    this.#go = go;
    const storing = host.store !== undefined;
    this.#address = make("input", { type: "url", class: "input", required: true, placeholder: "https://…/model.gguf", "aria-label": "Address of a GGUF file" });
    this.#keepAddress = make("input", { type: "checkbox", checked: storing, disabled: !storing });
    this.#keepFile = make("input", { type: "checkbox", disabled: !storing });
    this.element = make(
      "section",
      { class: "page", "aria-label": "Models" },
      make("h1", {}, "Models"),
      make("p", { class: "muted" }, "Any Gemma 4 model as a GGUF file, as Ollama and llama.cpp use them."),
      this.#now,
      make("div", { class: "card demo" }, this.#demo),
      this.#stored,
      this.#offered,
      this.#beginning,
      this.#addressCard(),
      this.#fileCard(),
    );
    host.changed.on(() => void this.update());
    server.changed.on(() => this.#showOffered());
    this.#showOffered();
    refill(this.#demo, demoRow(undefined, this.#rowOptions));
  }

  /** The page is looked at: what the server has may be more than it was. */
  opened(): void {
    // What ran before runs again, and whoever left the page has seen why.
    if (this.#host.state.kind === "ready") {
      this.#host.dismiss();
    }
    void this.update();
    void this.#server.refresh();
  }

  async update(): Promise<void> {
    this.#showNow();
    await this.#showStored();
  }

  use(choice: ModelChoice): void {
    void this.#host.load(choice).then(() => {
      const { state } = this.#host;
      if (state.kind === "ready" && !state.failure && this.element.isConnected) {
        this.#go.chat();
      }
    });
    this.element.parentElement?.scrollTo({ top: 0 });
  }

  #showNow(): void {
    const host = this.#host;
    const { state } = host;
    if (state === this.#loading) {
      // Its panel follows by itself, and the button in it is not to go away under a finger.
      return;
    }
    this.#loading = state.kind === "busy" ? state : undefined;
    switch (state.kind) {
      case "empty":
        return refill(this.#now);
      case "busy":
        return refill(this.#now, progressPanel(host));
      case "failed":
        return refill(this.#now, this.#failed(state));
      case "ready": {
        const { info } = state.engine;
        return refill(
          this.#now,
          state.failure && this.#failed(state.failure),
          make(
            "div",
            { class: "card current" },
            make(
              "div",
              { class: "row between" },
              make(
                "div",
                {},
                make("h2", {}, state.label),
                make(
                  "p",
                  { class: "muted small" },
                  ...facts([`${parameters(info.parameters)} parameters`, `${count(info.context)} tokens of context`, `${bytes(info.memory.total)} of graphics memory`]),
                ),
              ),
              make(
                "div",
                { class: "row" },
                button("Unload", () => void host.unload()),
                button("Chat", () => this.#go.chat(), { kind: "primary" }),
              ),
            ),
          ),
        );
      }
    }
  }

  #failed(failure: Failure): HTMLElement {
    return errorBox(failure.error, loadSteps(this.#host, failure, { device: this.#go.device, settings: this.#go.settings }));
  }

  async #showStored(): Promise<void> {
    const { store } = this.#host;
    if (!store) {
      this.#anyStored = false;
      this.#showBeginning();
      refill(this.#demo, demoRow(undefined, this.#rowOptions));
      return refill(this.#stored, make("p", { class: "card muted" }, "This browser keeps no files here, as in a private window. Models can be used, but not stored."));
    }
    const look = ++this.#look;
    // Whoever looks later knows better.
    const isLatest = () => look === this.#look;
    try {
      const [files, space] = await Promise.all([store.list(), store.estimate()]);
      if (!isLatest()) {
        return;
      }
      const all = groupStored(files);
      const isThis = ({ label }: StoredGroup) => label === DEMO_NAME;
      // The demo model has its own row, above.
      const groups = all.filter((group) => !isThis(group));
      this.#anyStored = groups.some(({ label }) => !isDemo(label));
      this.#showBeginning();
      refill(this.#demo, demoRow(all.find(isThis), this.#rowOptions));
      const rows = groups.map((group) => storedRow(group, this.#rowOptions));
      refill(
        this.#stored,
        groups.length > 0 &&
          make(
            "div",
            { class: "card" },
            make("div", { class: "row between" }, make("h2", {}, "In this browser"), make("span", { class: "muted small" }, ...spaceFacts(space))),
            make("ul", { class: "rows", "aria-label": "Stored models" }, ...rows),
          ),
      );
    } catch (error) {
      if (isLatest()) {
        notifyError(error);
      }
    }
  }

  get #rowOptions(): StoredRowOptions {
    return { host: this.#host, use: (choice) => this.use(choice), changed: () => void this.#showStored() };
  }

  /** What the server has beside the demo model, which came with the app. */
  get #served(): readonly ServerModel[] {
    return this.#server.models?.filter((model) => !isServedDemo(model)) ?? [];
  }

  /** For whoever has no model yet: where there are some. */
  #showBeginning(): void {
    if (this.#anyStored || this.#served.length > 0) {
      return refill(this.#beginning);
    }
    const ollama = make("a", { href: "https://ollama.com", rel: "noreferrer", target: "_blank" }, "Ollama");
    const pull = make("p", {}, "This server has no other yet. On the computer it runs on, ", ollama, " brings one: ", make("code", {}, "ollama pull gemma4:e2b"), ". Then look again.");
    refill(
      this.#beginning,
      make(
        "div",
        { class: "card" },
        make("h2", {}, "Where to get a model"),
        this.#server.ours && pull,
        this.#server.ours && make("div", { class: "row" }, button("Look again", () => void this.#server.refresh())),
        make("p", { class: "muted" }, "Any Gemma 4 model in a .gguf file will do, such as those on Hugging Face: give its address below, or download it and choose the file. E2B is the smallest."),
      ),
    );
  }

  #showOffered(): void {
    const models = this.#served;
    this.#showBeginning();
    if (models.length === 0) {
      return refill(this.#offered);
    }
    const rows = models.map((model) =>
      make(
        "li",
        { class: "row between" },
        make(
          "div",
          { class: "grow" },
          make("strong", {}, model.name),
          make("div", { class: "muted small" }, ...facts([bytes(model.bytes), model.parameters, model.format, model.family])),
        ),
        button("Use", () => this.use(this.#fromServer(model)), { kind: "primary", title: `Use ${model.name}` }),
      ),
    );
    refill(
      this.#offered,
      make(
        "div",
        { class: "card" },
        make("h2", {}, "On this server"),
        make("ul", { class: "rows", "aria-label": "Models on this server" }, ...rows),
      ),
    );
  }

  #fromServer({ url, name, bytes: size, sha256 }: ServerModel): ModelChoice {
    return { kind: "address", url, name, keep: this.#host.store !== undefined, ...(size > 0 ? { bytes: size } : {}), ...(sha256 ? { sha256 } : {}) };
  }

  #addressCard(): HTMLElement {
    const submit = (event: Event) => {
      event.preventDefault();
      const url = this.#address.value.trim();
      if (url !== "") {
        this.use({ kind: "address", url, keep: this.#keepAddress.checked });
      }
    };
    return make(
      "form",
      { class: "card", onsubmit: submit },
      make("h2", {}, "From an address"),
      make("div", { class: "row" }, this.#address, make("button", { type: "submit", class: "button primary" }, "Load")),
      make("label", { class: "check" }, this.#keepAddress, make("span", {}, "Keep it in this browser, to load at once next time and offline")),
    );
  }

  #fileCard(): HTMLElement {
    const pick = async () => this.take(await pickFiles(".gguf", true));
    return make(
      "div",
      { class: "card drop" },
      make("h2", {}, "From a file"),
      make("div", { class: "row" }, button("Choose a file", () => void pick()), make("span", { class: "muted small" }, "or drop it anywhere on this window")),
      make("label", { class: "check" }, this.#keepFile, make("span", {}, "Keep a copy in this browser")),
    );
  }

  /** Uses files that were picked or dropped. */
  take(files: readonly File[]): void {
    if (files.length > 0) {
      this.use({ kind: "files", files: [...files], keep: this.#keepFile.checked });
    }
  }
}

function spaceFacts({ usage, free, persisted }: StoreSpace): Child[] {
  const known = facts([usage === undefined ? undefined : `${bytes(usage)} used`, free === undefined ? undefined : `${bytes(free)} free`]);
  // This one is a sentence, and may be longer than a line of a phone.
  return persisted ? known : [...known, known.length > 0 && " · ", "the browser may clear it when space runs low"];
}
