// The frame around everything: list of conversations, header, the page that the address names, keys, dropped files.

import { ChatView } from "../chat/chat-view";
import type { ChatController } from "../chat/controller";
import type { Library } from "../chat/library";
import { openSettings } from "../chat/settings-dialog";
import { exportConversations, Sidebar } from "../chat/sidebar";
import { openSwitcher } from "../chat/switcher";
import type { Support } from "../device/adapter";
import { DeviceView } from "../device/device-view";
import { supportView } from "../device/support-view";
import type { ModelHost } from "../model/host";
import { ModelsView } from "../model/models-view";
import type { Server } from "../model/server";
import type { Preferences } from "../state/preferences";
import { button, iconButton } from "./button";
import { make, refill } from "./dom";
import { noticeRegions, notify, notifyError } from "./notices";

export interface Parts {
  preferences: Preferences;
  library: Library;
  host: ModelHost;
  chat: ChatController;
  support: Support;
  server: Server;
}

export class Shell {
  readonly elements: HTMLElement[];
  readonly #parts: Parts;
  readonly #sidebar: Sidebar;
  readonly #chatView: ChatView;
  readonly #models: ModelsView;
  readonly #device: DeviceView;
  readonly #main = make("main", { id: "main", tabindex: -1 });
  readonly #title = make("span", { class: "header-title" });
  readonly #chip = make("span");
  /** With one button, whatever it says: a press of it is not to be lost while a model is loaded. */
  readonly #model = make(
    "span",
    { class: "header-model" },
    button(this.#chip, () => this.#to("#/models"), { kind: "quiet", class: "model-chip", title: "Models" }),
  );
  readonly #frame: HTMLElement;
  readonly #menu: HTMLButtonElement;
  #unsaved: HTMLElement | undefined;

  constructor(parts: Parts) {
    this.#parts = parts;
    const { library, chat, host, preferences, support, server } = parts;
    const go = {
      newChat: () => this.#newChat(),
      openChat: (id: string) => this.#to(`#/chat/${id}`),
      models: () => this.#to("#/models"),
      device: () => this.#to("#/device"),
      chat: () => this.#to(chat.conversation.messages.length > 0 ? `#/chat/${chat.conversation.id}` : "#/"),
      settings: () => openSettings({ preferences, chat, host, server }),
      // The address follows what is shown without making it anew.
      shown: (id: string) => {
        history.replaceState(null, "", `#/chat/${id}`);
        this.#sidebar.setPage(location.hash);
      },
    };
    this.#sidebar = new Sidebar(library, chat, preferences, go);
    this.#chatView = new ChatView(chat, host, go);
    this.#models = new ModelsView(host, server, go);
    this.#device = new DeviceView(host, support, server, go.models);
    this.#menu = iconButton("Conversations", "menu", () => this.#drawer(true), { class: "menu-button" });
    this.#menu.setAttribute("aria-controls", "sidebar");
    this.#menu.setAttribute("aria-expanded", "false");
    const shade = make("div", { class: "shade", onclick: () => this.#drawer(false) });
    const header = make(
      "header",
      { class: "header" },
      this.#menu,
      this.#title,
      this.#model,
      iconButton("Settings", "sliders", go.settings),
      iconButton("New chat", "add", go.newChat, { class: "narrow-only" }),
    );
    this.#frame = make("div", { class: "frame" }, this.#sidebar.element, shade, make("div", { class: "column" }, header, this.#main));
    this.elements = [make("a", { class: "skip", href: "#main", onclick: (event: Event) => this.#skip(event) }, "Skip to the content"), this.#frame, ...noticeRegions()];
    chat.changed.on(() => this.#showHeader());
    host.changed.on(() => {
      this.#showHeader();
      // The Models page tells it itself.
      if (host.state.kind === "ready" && host.state.failure && !this.#models.element.isConnected) {
        notifyError(host.state.failure.error);
        host.dismiss();
      }
    });
    host.progressed.on(() => this.#showHeader());
    chat.unsaved.on((failure) => this.#tellUnsaved(failure));
  }

  start(): void {
    addEventListener("hashchange", () => this.#route());
    addEventListener("keydown", (event) => this.#key(event));
    addEventListener("dragover", (event) => this.#drag(event));
    addEventListener("dragleave", (event) => event.relatedTarget === null && this.#frame.classList.remove("dropping"));
    addEventListener("drop", (event) => this.#drop(event));
    // A press anywhere else closes an open menu.
    addEventListener("pointerdown", ({ target }) => {
      document.querySelectorAll<HTMLDetailsElement>("details.menu[open]").forEach((menu) => {
        if (!menu.contains(target as Node)) {
          menu.open = false;
        }
      });
    });
    this.#route(true);
  }

  #to(hash: string): void {
    if (location.hash === hash) {
      this.#route();
    } else {
      location.hash = hash;
    }
  }

  #newChat(): void {
    this.#parts.chat.open();
    this.#to("#/");
    this.#chatView.composer.input.focus();
  }

  #route(first = false): void {
    const { chat, support, library } = this.#parts;
    const [, page, id] = location.hash.split("/");
    this.#drawer(false);
    this.#main.className = "";
    if (page === "models" && support.kind === "yes") {
      this.#show(this.#models.element, "Models");
      this.#models.opened();
    } else if (page === "device") {
      this.#show(this.#device.element, "Device");
      this.#device.update();
    } else if (page === "chat" && id && library.get(id)) {
      chat.open(id);
      this.#showChat();
    } else if (support.kind === "no") {
      this.#show(supportView(support.lack), "");
    } else {
      // An empty conversation is as good as a new one, and may have a system prompt already.
      if (chat.conversation.messages.length > 0) {
        chat.open();
      }
      this.#showChat();
    }
    this.#sidebar.setPage(location.hash);
    this.#showHeader();
    // Whoever works by keyboard or ear goes on where the new page begins.
    if (!first && this.#main.className !== "chatting") {
      this.#main.focus();
    }
  }

  #showChat(): void {
    this.#show(this.#chatView.element, "");
    this.#main.className = "chatting";
    this.#chatView.reset();
    // On a touch screen this would open the keyboard over what was asked for.
    if (!matchMedia("(pointer: coarse)").matches) {
      this.#chatView.composer.input.focus();
    }
  }

  #show(element: HTMLElement, title: string): void {
    refill(this.#main, element);
    this.#main.scrollTop = 0;
    document.title = title === "" ? "rullama" : `${title} – rullama`;
  }

  #showHeader(): void {
    const { chat, host } = this.#parts;
    const chatting = this.#main.className === "chatting";
    this.#title.textContent = chatting && chat.conversation.messages.length > 0 ? chat.conversation.title : "";
    const { state } = host;
    const percent = state.kind === "busy" && state.stages.length > 0 ? ` ${Math.floor(state.share * 100)} %` : "";
    const label = { empty: "No model", busy: `Loading${percent}`, ready: "", failed: "Model failed" }[state.kind] || (state as { label: string }).label;
    this.#model.dataset.state = state.kind;
    this.#chip.textContent = label;
  }

  /** Says that a conversation is not kept, for as long as that is so. */
  #tellUnsaved(failure: { reason: unknown } | undefined): void {
    this.#unsaved?.remove();
    if (failure) {
      const full = (failure.reason as { name?: unknown } | undefined)?.name === "QuotaExceededError";
      const why = full ? "the browser has no more room" : "the browser refused";
      this.#unsaved = notify(`Not saved: ${why}. Export this conversation before you close the page.`, {
        label: "Export",
        run: () => exportConversations([this.#parts.chat.conversation]),
      });
    }
  }

  #drawer(open: boolean): void {
    const was = this.#frame.classList.contains("drawer-open");
    this.#frame.classList.toggle("drawer-open", open);
    this.#menu.setAttribute("aria-expanded", String(open));
    if (open) {
      this.#sidebar.element.querySelector<HTMLElement>("button, a, input")?.focus();
    } else if (was) {
      this.#menu.focus();
    }
  }

  #key(event: KeyboardEvent): void {
    const { chat, library } = this.#parts;
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k" && !event.altKey && !event.shiftKey) {
      event.preventDefault();
      openSwitcher(library, { newChat: () => this.#newChat(), openChat: (id) => this.#to(`#/chat/${id}`) });
    } else if (event.key === "Escape" && !document.querySelector("dialog[open]")) {
      if (this.#frame.classList.contains("drawer-open")) {
        this.#drawer(false);
      } else if (document.querySelector("details.menu[open]")) {
        document.querySelectorAll<HTMLDetailsElement>("details.menu[open]").forEach((menu) => {
          menu.open = false;
        });
      } else {
        void chat.stop();
      }
    }
  }

  #skip(event: Event): void {
    event.preventDefault();
    this.#main.focus();
  }

  #drag(event: DragEvent): void {
    if (event.dataTransfer?.types.includes("Files") && this.#parts.support.kind === "yes") {
      event.preventDefault();
      this.#frame.classList.add("dropping");
    }
  }

  #drop(event: DragEvent): void {
    const files = [...(event.dataTransfer?.files ?? [])];
    this.#frame.classList.remove("dropping");
    if (files.length > 0) {
      event.preventDefault();
      this.#to("#/models");
      this.#models.take(files);
    }
  }
}
