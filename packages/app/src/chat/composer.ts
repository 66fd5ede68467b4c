// Where messages are written: a field that grows, a button that sends or stops, and how full the context is.

import { count } from "../text/format";
import { iconButton } from "../ui/button";
import { make } from "../ui/dom";

export interface ComposerActions {
  send(text: string): void;
  stop(): void;
}

export class Composer {
  readonly element: HTMLElement;
  readonly input: HTMLTextAreaElement;
  readonly #send: HTMLButtonElement;
  readonly #stop: HTMLButtonElement;
  readonly #meter: HTMLElement;
  readonly #meterFill = make("span", { class: "meter-fill" });
  readonly #meterText = make("span", { class: "meter-text" });
  readonly #actions: ComposerActions;
  /** Tokens that the conversation has and may have; undefined while nobody knows. */
  #filled: { used: number; context: number } | undefined;

  constructor(actions: ComposerActions) {
    this.#actions = actions;
    this.input = make("textarea", {
      class: "composer-input",
      rows: 1,
      placeholder: "Ask anything",
      "aria-label": "Message",
      "aria-describedby": "composer-hint",
      enterkeyhint: "send",
      onkeydown: (event: KeyboardEvent) => this.#key(event),
      oninput: () => {
        this.#fit();
        this.#showMeter();
      },
    });
    this.#send = iconButton("Send", "send", () => this.#submit(), { class: "send" });
    this.#stop = iconButton("Stop", "stop", () => actions.stop(), { class: "send stop" });
    this.#stop.hidden = true;
    this.#meter = make(
      "div",
      { class: "meter", role: "meter", "aria-label": "Context used", "aria-valuemin": 0, hidden: true },
      make("span", { class: "meter-bar" }, this.#meterFill),
      this.#meterText,
    );
    this.element = make(
      "div",
      { class: "composer" },
      make("div", { class: "composer-field" }, this.input, this.#send, this.#stop),
      make(
        "div",
        { class: "composer-below" },
        make("span", { id: "composer-hint", class: "hint" }, "Enter sends, Shift+Enter begins a new line. Nothing leaves this device."),
        this.#meter,
      ),
    );
  }

  /** Whether an answer is being written, which can be stopped. */
  setWriting(writing: boolean): void {
    const focused = document.activeElement === this.#send || document.activeElement === this.#stop;
    this.#send.hidden = writing;
    this.#stop.hidden = !writing;
    if (focused) {
      // The button under the finger became another one; focus would fall to the page.
      this.input.focus();
    }
  }

  /** What the empty field invites to. */
  setInvitation(text: string): void {
    this.input.placeholder = text;
  }

  /** How full the context is without what is being typed; undefined hides it. */
  setMeter(filled: { used: number; context: number } | undefined): void {
    this.#filled = filled;
    this.#showMeter();
  }

  #showMeter(): void {
    const draft = draftTokens(this.input.value);
    const { used: counted, context } = this.#filled ?? { used: 0, context: 0 };
    const used = counted + draft;
    this.#meter.hidden = this.#filled === undefined || used === 0;
    if (this.#meter.hidden) {
      return;
    }
    const share = Math.min(1, used / context);
    this.#meterFill.style.setProperty("width", `${Math.round(share * 100)}%`);
    this.#meterText.textContent = `${draft > 0 ? "about " : ""}${count(used)} of ${count(context)} tokens`;
    this.#meter.classList.toggle("full", share > 0.9);
    this.#meter.setAttribute("aria-valuenow", String(used));
    this.#meter.setAttribute("aria-valuemax", String(context));
    this.#meter.setAttribute("aria-valuetext", this.#meterText.textContent);
  }

  #key(event: KeyboardEvent): void {
    // While an input method composes, Enter chooses a word. On touch screens it begins a line, as everywhere there.
    const touch = matchMedia("(pointer: coarse)").matches;
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing && !touch) {
      event.preventDefault();
      this.#submit();
    }
  }

  #submit(): void {
    const text = this.input.value.trim();
    if (text === "") {
      return;
    }
    this.input.value = "";
    this.#fit();
    this.#showMeter();
    this.#actions.send(text);
  }

  #fit(): void {
    this.input.style.setProperty("height", "auto");
    this.input.style.setProperty("height", `${this.input.scrollHeight}px`);
  }
}

/** Tokens that a text will be, roughly: counting them exactly takes the engine, which may be busy. */
function draftTokens(text: string): number {
  return Math.ceil(text.trim().length / 4);
}
