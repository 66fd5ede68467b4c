// The chat: the messages that are shown, and the field for the next.

import { DEMO_LABEL, isDemoChoice, isThisDemo } from "../model/demo";
import { labelOf, type HostState, type ModelHost } from "../model/host";
import { tokensPerSecond } from "../text/format";
import { button } from "../ui/button";
import { make, refill } from "../ui/dom";
import type { Steps } from "../ui/error-box";
import { announce, notify } from "../ui/notices";
import { Composer } from "./composer";
import type { ChatController, Writing } from "./controller";
import { MessageView, NOTHING } from "./message-view";
import { path, place, type ChatMessage } from "./tree";
import { welcome } from "./welcome";

/** How near the end counts as at the end. */
const NEAR = 80;

const WRITING = "The model is writing";

export interface ChatNavigation {
  models(): void;
  device(): void;
  settings(): void;
  shown(id: string): void;
}

export class ChatView {
  readonly element: HTMLElement;
  readonly composer: Composer;
  readonly #chat: ChatController;
  readonly #host: ModelHost;
  readonly #go: ChatNavigation;
  readonly #views = new Map<string, MessageView>();
  readonly #list = make("div", { class: "messages", role: "log", "aria-live": "off", "aria-label": "Conversation" });
  readonly #welcome = make("div", { class: "welcome" });
  readonly #scroller = make("div", { class: "scroller", tabindex: -1 });
  readonly #latest = button("Latest", () => this.#toEnd(), { class: "latest", icon: "down" });
  readonly #live = make("span", { class: "live-rate", "aria-hidden": "true" });
  #frame = 0;
  #follows = true;
  #counted = 0;
  /** Whether it is still to be said that the model writes, because it was loaded first. */
  #unsaid = false;
  /** Says that there is no model to ask yet. */
  #waits: HTMLElement | undefined;
  #welcomed: { state: HostState; empty: boolean; label: string | undefined } | undefined;

  constructor(chat: ChatController, host: ModelHost, go: ChatNavigation) {
    this.#chat = chat;
    this.#host = host;
    this.#go = go;
    this.composer = new Composer({
      send: (text) => this.#send(text),
      stop: () => void chat.stop(),
    });
    this.#scroller.append(this.#welcome, this.#list);
    this.#scroller.addEventListener("scroll", () => this.#scrolled(), { passive: true });
    this.#latest.hidden = true;
    this.element = make(
      "section",
      { class: "chat", "aria-label": "Chat" },
      this.#scroller,
      make("div", { class: "chat-bottom" }, this.#latest, this.#live, this.composer.element),
    );
    chat.changed.on(() => this.update());
    chat.grew.on((writing) => this.#grew(writing));
    chat.finished.on((message) => this.#finished(message));
    host.changed.on(() => {
      if (host.state.kind !== "empty") {
        this.#waits?.remove();
      }
      this.update();
    });
    this.update();
  }

  update(): void {
    const conversation = this.#chat.conversation;
    const shown = path(conversation);
    const known = new Set(shown);
    for (const [id, view] of this.#views) {
      // Also what another tab wrote anew, which is another object of the same id.
      if (!known.has(view.message)) {
        view.element.remove();
        this.#views.delete(id);
      }
    }
    shown.forEach((message, index) => {
      let view = this.#views.get(message.id);
      if (!view) {
        view = new MessageView(message, this.#actions);
        this.#views.set(message.id, view);
      }
      view.update(place(conversation, message.id));
      if (this.#list.children[index] !== view.element) {
        this.#list.insertBefore(view.element, this.#list.children[index] ?? null);
      }
    });
    const writing = this.#chat.writing;
    this.composer.setWriting(writing?.conversation === conversation);
    this.#live.textContent = "";
    this.#list.hidden = shown.length === 0;
    this.#welcome.hidden = shown.length > 0 && this.#host.state.kind !== "busy";
    this.#showWelcome(shown.length === 0);
    void this.#measure();
    if (this.#follows) {
      this.#toEnd();
    }
  }

  /** Another conversation is shown: begin at its end. */
  reset(): void {
    this.#follows = true;
    this.#toEnd();
  }

  readonly #actions = {
    edit: (id: string, text: string) => {
      this.#follows = true;
      void this.#chat.edit(id, text);
    },
    regenerate: (id: string) => {
      this.#follows = true;
      void this.#chat.regenerate(id);
    },
    show: (id: string) => {
      this.#follows = false;
      this.#chat.show(id);
      this.#list.querySelector<HTMLElement>(`[data-id="${CSS.escape(id)}"] .switch button:not(:disabled)`)?.focus();
    },
    steps: (id: string): Steps => ({
      retry: { label: "Try again", run: () => void this.#chat.regenerate(id) },
      reload: { label: "Load the model and try again", run: () => void this.#chat.regenerate(id) },
      models: { label: "Models", run: () => this.#go.models() },
      settings: { label: "Settings", run: () => this.#go.settings() },
      device: { label: "Device", run: () => this.#go.device() },
    }),
  };

  /** Asks what a button says, which is gone then: whoever works by keyboard goes on in the field. */
  #ask(text: string): void {
    this.#send(text);
    if (!matchMedia("(pointer: coarse)").matches) {
      this.composer.input.focus();
    }
  }

  #send(text: string): void {
    const { state, atHand } = this.#host;
    if (state.kind === "empty" && !atHand) {
      this.composer.input.value = text;
      this.#waits?.remove();
      this.#waits = notify("Choose a model first; your message waits here.", { label: "Models", run: () => this.#go.models() });
      return;
    }
    this.#follows = true;
    this.#unsaid = state.kind !== "ready";
    announce(this.#unsaid ? `Loading ${awaitedLabel(this.#host)}` : WRITING);
    void this.#chat.send(text);
    this.#go.shown(this.#chat.conversation.id);
  }

  #grew(writing: Writing): void {
    if (writing.conversation !== this.#chat.conversation) {
      return;
    }
    if (this.#unsaid) {
      this.#unsaid = false;
      announce(WRITING);
    }
    if (this.#frame !== 0) {
      return;
    }
    // In a hidden tab no frame comes; everything is shown at once when the tab is looked at again.
    this.#frame = requestAnimationFrame(() => {
      this.#frame = 0;
      this.#views.get(writing.message.id)?.grow();
      this.#live.textContent = writing.rate === undefined || this.#chat.writing !== writing ? "" : tokensPerSecond(writing.rate);
      const context = this.#host.engine?.info.context;
      if (context) {
        this.composer.setMeter({ used: this.#counted + writing.tokens, context });
      }
      if (this.#follows) {
        this.#toEnd();
      }
    });
  }

  #finished(message: ChatMessage): void {
    if (!this.#views.has(message.id)) {
      return;
    }
    // Read once, when it is whole: a screen reader that follows every word says none of them.
    const { state, content } = message;
    announce(state === "failed" ? "The answer failed" : state === "stopped" ? `Stopped. ${content}` : content || NOTHING);
  }

  #showWelcome(empty: boolean): void {
    const { state, atHand } = this.#host;
    const label = atHand && labelOf(atHand);
    if (this.#welcomed?.state === state && this.#welcomed.empty === empty && this.#welcomed.label === label) {
      return;
    }
    this.#welcomed = { state, empty, label };
    if (state.kind !== "busy") {
      this.composer.setInvitation(atHand && isDemoChoice(atHand) ? "Ask about rullama" : "Ask anything");
    }
    refill(this.#welcome, ...welcome(this.#host, { empty, go: this.#go, ask: (text) => this.#ask(text) }));
  }

  /** Counts the tokens of what is shown, as the model counts them. */
  async #measure(): Promise<void> {
    const engine = this.#host.engine;
    const conversation = this.#chat.conversation;
    if (!engine || conversation.messages.length === 0) {
      this.#counted = 0;
      return this.composer.setMeter(engine && { used: 0, context: engine.info.context });
    }
    const writing = this.#chat.writing;
    const end = writing?.conversation === conversation ? writing.message.parent : undefined;
    try {
      const text = await engine.render(this.#chat.prompt(conversation, end ?? undefined));
      const { length } = await engine.tokenize(text);
      if (this.#chat.conversation === conversation && this.#host.engine === engine) {
        this.#counted = length;
        this.composer.setMeter({ used: length + (this.#chat.writing?.tokens ?? 0), context: engine.info.context });
      }
    } catch {
      this.composer.setMeter(undefined);
    }
  }

  #scrolled(): void {
    const { scrollTop, scrollHeight, clientHeight } = this.#scroller;
    this.#follows = scrollHeight - scrollTop - clientHeight < NEAR;
    this.#latest.hidden = this.#follows;
  }

  #toEnd(): void {
    // What is shown before anything was said begins at its beginning.
    this.#scroller.scrollTop = this.#list.hidden ? 0 : this.#scroller.scrollHeight;
  }
}

/** What has to be loaded before the answer. */
function awaitedLabel({ state, atHand }: ModelHost): string {
  if (state.kind === "busy") {
    return state.label;
  }
  if (!atHand) {
    return "the model";
  }
  return isThisDemo(atHand) ? DEMO_LABEL : labelOf(atHand);
}
