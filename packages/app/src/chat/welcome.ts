// What a chat shows of the model before anything was said: what is loaded or could be, and how far it has come.

import { DEMO_LIMITS, DEMO_QUESTIONS, DEMO_TITLE, isDemoChoice } from "../model/demo";
import { labelOf, type ModelHost } from "../model/host";
import { loadSteps, type LoadNavigation } from "../model/load-steps";
import { progressPanel } from "../model/progress-panel";
import { button } from "../ui/button";
import { make, type Child } from "../ui/dom";
import { errorBox } from "../ui/error-box";

export interface WelcomeOptions {
  /** Whether the conversation has no messages yet. */
  empty: boolean;
  go: LoadNavigation & { models(): void };
  /** Asks a question, which loads a model first if there is none. */
  ask: (text: string) => void;
}

export function welcome(host: ModelHost, options: WelcomeOptions): Child[] {
  const { state, atHand } = host;
  const isDemo = atHand !== undefined && isDemoChoice(atHand);
  switch (state.kind) {
    case "busy":
      return [progressPanel(host)];
    case "failed":
      return [errorBox(state.error, loadSteps(host, state, options.go))];
    case "ready":
      return !options.empty ? [] : isDemo ? demoReady(options) : ready(state.label);
    case "empty":
      return [
        make("h1", {}, "A chat that stays with you"),
        make("p", { class: "muted" }, `${isDemo ? "A model" : "Gemma 4"} runs in this tab, on your own graphics processor. No account, no server, no tracking.`),
        isDemo ? demoOffer(host, options) : offer(host, options),
      ];
  }
}

function ready(label: string): Child[] {
  return [make("h1", {}, "What is on your mind?"), make("p", { class: "muted" }, `${label} is ready. It runs on this device, and only here.`)];
}

function demoReady({ go, ask }: WelcomeOptions): Child[] {
  return [
    make("h1", {}, "Ask about rullama"),
    make("p", { class: "muted" }, `The demo model is ready. It runs on this device, and only here. ${DEMO_LIMITS}`),
    questions(ask),
    make("div", { class: "row centre" }, button("Choose another model", () => go.models(), { kind: "quiet" })),
  ];
}

/** For whoever has used a model before: that one, if it is stored. */
function offer(host: ModelHost, { go }: WelcomeOptions): HTMLElement {
  const { atHand, demo } = host;
  return make(
    "div",
    { class: "row centre" },
    atHand && button(`Load ${labelOf(atHand)}`, () => void host.load(atHand), { kind: "primary" }),
    button("Choose a model", () => go.models(), { kind: atHand ? "plain" : "primary" }),
    !atHand && button("Load the demo model", () => void host.load(demo)),
  );
}

/** For whoever is here for the first time, or has used no other model yet. */
function demoOffer(host: ModelHost, { go, ask }: WelcomeOptions): HTMLElement {
  return make(
    "div",
    { class: "card demo" },
    make("h2", {}, DEMO_TITLE),
    make("p", { class: "muted" }, DEMO_LIMITS, " Ask it something, and it is loaded first:"),
    questions(ask),
    make(
      "div",
      { class: "row centre" },
      button("Load the demo model", () => void host.load(host.atHand ?? host.demo), { kind: "primary" }),
      button("Choose another model", () => go.models()),
    ),
  );
}

/** Questions to begin with, asked by one press. */
function questions(ask: (text: string) => void): HTMLElement {
  const buttons = DEMO_QUESTIONS.map((question) => make("li", {}, button(question, () => ask(question), { class: "question" })));
  return make("ul", { class: "questions", "aria-label": "Questions to begin with" }, ...buttons);
}
