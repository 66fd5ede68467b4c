// Which page is shown. The address has it after the `#`.

import { signal } from "@preact/signals";
import type { ChatController } from "../chat/controller";
import type { Library } from "../chat/library";

export type Page = "chat" | "models" | "device";

const hash = signal(location.hash);

export class Navigation {
  readonly #chat: ChatController;
  readonly #library: Library;
  /** Opens the settings. */
  settings: () => void = () => {};

  constructor(chat: ChatController, library: Library) {
    this.#chat = chat;
    this.#library = library;
    addEventListener("hashchange", () => this.#follow());
    this.#follow();
  }

  /** The page of the current address. */
  get page(): Page {
    const [, page] = hash.value.split("/");
    return page === "models" || page === "device" ? page : "chat";
  }

  get hash(): string {
    return hash.value;
  }

  models(): void {
    this.#to("#/models");
  }

  device(): void {
    this.#to("#/device");
  }

  /** To the chat that was shown last. */
  chat(): void {
    const { id, messages } = this.#chat.conversation;
    this.#to(messages.length > 0 ? `#/chat/${id}` : "#/");
  }

  openChat(id: string): void {
    this.#to(`#/chat/${id}`);
  }

  newChat(): void {
    this.#chat.open();
    this.#to("#/");
  }

  /** Sets the address of the chat that is shown already. */
  shown(id: string): void {
    history.replaceState(null, "", `#/chat/${id}`);
    hash.value = location.hash;
  }

  #to(wanted: string): void {
    if (location.hash === wanted) {
      this.#follow();
    } else {
      location.hash = wanted;
    }
  }

  #follow(): void {
    const [, page, id] = location.hash.split("/");
    if (page === "chat" && id && this.#library.get(id)) {
      this.#chat.open(id);
    } else if (page !== "models" && page !== "device" && this.#chat.conversation.messages.length > 0) {
      // A chat without messages is as good as a new one, and may have a system prompt already.
      this.#chat.open();
    }
    hash.value = location.hash;
  }
}

/** Whether the user works with a finger. A focused field would open the keyboard over the page then. */
export function isTouch(): boolean {
  return matchMedia("(pointer: coarse)").matches;
}

/** Puts the focus into the message field, if it is shown. */
export function focusComposer(): void {
  // The field may be rendered only after the event that asked for this.
  setTimeout(() => document.querySelector<HTMLElement>(".composer-input")?.focus());
}
