// One message on the page, with what can be done with it.

import { MarkdownStream } from "../markdown/stream";
import { duration, plural, tokensPerSecond } from "../text/format";
import { button, iconButton } from "../ui/button";
import { make, refill, type Child } from "../ui/dom";
import { errorBox, type Steps } from "../ui/error-box";
import { announce } from "../ui/notices";
import { copyText } from "./clipboard";
import type { ChatMessage, Place } from "./tree";

export interface MessageActions {
  edit(id: string, text: string): void;
  regenerate(id: string): void;
  show(id: string): void;
  steps(id: string): Steps;
}

/** In the place of an answer without a word. */
export const NOTHING = "The model said nothing.";

export class MessageView {
  readonly element: HTMLElement;
  readonly message: ChatMessage;
  readonly #actions: MessageActions;
  readonly #content: HTMLElement;
  readonly #thought: HTMLDetailsElement;
  readonly #thoughtText = make("div", { class: "thought-text markdown" });
  readonly #thoughtTitle = make("span", {}, "Thoughts");
  readonly #footer = make("footer", { class: "message-footer" });
  readonly #problem = make("div");
  readonly #silent = make("p", { class: "muted", hidden: true }, NOTHING);
  readonly #markdown: MarkdownStream | undefined;
  readonly #thoughtMarkdown = new MarkdownStream(this.#thoughtText, { document, onCopy: copyCode });
  #place: Place = { index: 0, count: 1, ids: [] };
  /** What the buttons were last made for. */
  #made = "";

  constructor(message: ChatMessage, actions: MessageActions) {
    this.message = message;
    this.#actions = actions;
    const mine = message.role === "user";
    this.#content = make("div", { class: mine ? "content plain" : "content markdown" });
    this.#thought = make("details", { class: "thought" }, make("summary", {}, this.#thoughtTitle), this.#thoughtText);
    this.#markdown = mine ? undefined : new MarkdownStream(this.#content, { document, onCopy: copyCode });
    this.element = make(
      "article",
      { class: `message ${message.role}`, "aria-label": mine ? "You" : "Model", "data-id": message.id },
      !mine && this.#thought,
      this.#content,
      this.#silent,
      this.#problem,
      this.#footer,
    );
  }

  /** Shows the message as it is now. */
  update(place: Place): void {
    this.#place = place;
    this.grow();
    const { state, error } = this.message;
    this.element.dataset.state = state;
    this.element.setAttribute("aria-busy", String(state === "writing"));
    // Made anew only where something is different: a button under a finger, or one with focus, is to stay.
    const made = JSON.stringify([state, error, place, facts(this.message)]);
    if (made !== this.#made) {
      this.#made = made;
      this.#showFooter();
      refill(this.#problem, error && errorBox(error, this.#actions.steps(this.message.id)));
    }
  }

  /** Shows what was added to the text since the last look. */
  grow(): void {
    const { content, thought, state } = this.message;
    if (this.#markdown) {
      this.#markdown.update(content);
      this.#thought.hidden = !thought;
      this.#thoughtMarkdown.update(thought?.trimStart() ?? "");
      this.#thoughtTitle.textContent = state === "writing" && content === "" ? "Thinking…" : "Thoughts";
      this.#silent.hidden = state !== "complete" || content !== "";
      this.element.classList.toggle("waiting", state === "writing" && content === "" && !thought);
    } else {
      this.#content.textContent = content;
    }
  }

  #showFooter(): void {
    const { id, role, state } = this.message;
    if (state === "writing") {
      return refill(this.#footer);
    }
    const actions: Child[] = [
      this.#place.count > 1 && this.#switch(),
      iconButton("Copy", "copy", () => void copyText(this.message.content).then(() => announce("Copied"))),
      role === "user"
        ? iconButton("Edit", "edit", () => this.#edit())
        : iconButton("Write another answer", "retry", () => this.#actions.regenerate(id)),
      make("span", { class: "facts" }, facts(this.message)),
    ];
    refill(this.#footer, ...actions);
  }

  #switch(): HTMLElement {
    const { index, count, ids } = this.#place;
    const to = (at: number) => () => this.#actions.show(ids[at] as string);
    return make(
      "span",
      { class: "switch", role: "group", "aria-label": "Versions" },
      iconButton("Version before", "back", to(index - 1), { disabled: index === 0 }),
      make("span", { class: "switch-place", "aria-label": `Version ${index + 1} of ${count}` }, `${index + 1}/${count}`),
      iconButton("Version after", "forward", to(index + 1), { disabled: index === count - 1 }),
    );
  }

  #edit(): void {
    const input = make("textarea", { class: "input edit-input", "aria-label": "Edit the message", rows: 3 });
    input.value = this.message.content;
    const close = () => {
      form.remove();
      this.#content.hidden = false;
      this.#footer.hidden = false;
      (this.#footer.querySelector('[aria-label="Edit"]') as HTMLElement | null)?.focus();
    };
    const save = () => {
      const text = input.value.trim();
      close();
      if (text !== "") {
        this.#actions.edit(this.message.id, text);
      }
    };
    const form = make(
      "div",
      { class: "edit-form" },
      input,
      make("div", { class: "row end" }, button("Cancel", close), button("Ask this instead", save, { kind: "primary" })),
    );
    input.addEventListener("keydown", (event) => {
      if (event.key === "Escape") {
        event.stopPropagation();
        close();
      } else if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
        event.preventDefault();
        save();
      }
    });
    this.#content.hidden = true;
    this.#footer.hidden = true;
    this.#content.after(form);
    input.focus();
    input.setSelectionRange(input.value.length, input.value.length);
  }
}

/** How an answer came about, in a few words. */
function facts({ role, state, speed, cut }: ChatMessage): string {
  if (role === "user") {
    return "";
  }
  const words: string[] = [];
  if (state === "stopped") {
    words.push("Stopped");
  }
  if (cut) {
    words.push("Cut at the limit");
  }
  if (speed && speed.generatedTokens > 0) {
    const rate = (Math.max(1, speed.generatedTokens - 1) / speed.generateMs) * 1000;
    words.push(plural(speed.generatedTokens, "token"), tokensPerSecond(rate), `${duration(speed.promptMs)} to the first`);
  }
  return words.join(" · ");
}

function copyCode(text: string, pressed: HTMLButtonElement): void {
  void copyText(text).then((copied) => {
    pressed.textContent = copied ? "Copied" : "Not allowed";
    announce(copied ? "Copied" : "The browser does not allow copying");
    setTimeout(() => {
      pressed.textContent = "Copy";
    }, 2000);
  });
}
