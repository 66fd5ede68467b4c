// The list of conversations, and the ways to everything else.

import { age, fileDate } from "../text/format";
import type { Preferences, Theme } from "../state/preferences";
import { button, iconButton } from "../ui/button";
import { ask, confirm } from "../ui/dialog";
import { make, pickFiles, refill, saveFile, type Child } from "../ui/dom";
import { icon, type IconName } from "../ui/icons";
import { notify, notifyError } from "../ui/notices";
import type { ChatController } from "./controller";
import type { Library } from "./library";
import { search } from "./search";
import { exportText, importText } from "./transfer";
import type { Conversation } from "./tree";

/** More than this many at once helps nobody; searching does. */
const MOST = 200;

export interface SidebarNavigation {
  newChat(): void;
  openChat(id: string): void;
}

export class Sidebar {
  readonly element: HTMLElement;
  readonly #library: Library;
  readonly #chat: ChatController;
  readonly #go: SidebarNavigation;
  readonly #list = make("div", { class: "conversations" });
  readonly #search = make("input", { type: "search", class: "input", placeholder: "Search", "aria-label": "Search conversations" });
  readonly #links: HTMLAnchorElement[];
  #seen = "";

  constructor(library: Library, chat: ChatController, preferences: Preferences, go: SidebarNavigation) {
    this.#library = library;
    this.#chat = chat;
    this.#go = go;
    this.#search.addEventListener("input", () => this.update());
    this.#links = [pageLink("Models", "#/models", "cube"), pageLink("Device", "#/device", "chip")];
    this.element = make(
      "nav",
      { class: "sidebar", "aria-label": "Conversations and pages", id: "sidebar" },
      make(
        "div",
        { class: "sidebar-top" },
        make("a", { class: "brand", href: "#/" }, brandMark(), make("span", {}, "rullama")),
        button("New chat", () => go.newChat(), { icon: "add", class: "wide", title: "New chat (Ctrl+K, then Enter)" }),
        this.#search,
      ),
      this.#list,
      make(
        "div",
        { class: "sidebar-bottom" },
        ...this.#links,
        make(
          "div",
          { class: "row between" },
          make(
            "div",
            { class: "row tight" },
            iconButton("Import conversations", "import", () => void this.#import()),
            iconButton("Export all conversations", "export", () => exportConversations(library.all())),
          ),
          themeButton(preferences),
        ),
      ),
    );
    library.changed.on(() => this.update());
    chat.changed.on(() => this.update());
    this.update();
  }

  /** Marks where we are. */
  setPage(hash: string): void {
    this.#links.forEach((link) => {
      if (link.hash === hash) {
        link.setAttribute("aria-current", "page");
      } else {
        link.removeAttribute("aria-current");
      }
    });
    this.update();
  }

  update(): void {
    const found = search(this.#library.all(), this.#search.value);
    const now = Date.now();
    // While an answer is saved again and again, nothing here changes, and an open menu stays open.
    const seen = JSON.stringify([
      ...found.slice(0, MOST).map(({ conversation: { id, title, updatedAt }, excerpt }) => [id, title, age(updatedAt, now), excerpt]),
      this.#search.value.trim() === "",
      this.#chat.conversation.id,
      location.hash,
    ]);
    if (seen === this.#seen) {
      return;
    }
    this.#seen = seen;
    const groups = new Map<string, HTMLElement[]>();
    for (const { conversation, excerpt } of found.slice(0, MOST)) {
      const heading = this.#search.value.trim() === "" ? age(conversation.updatedAt, now) : "Found";
      groups.set(heading, [...(groups.get(heading) ?? []), this.#row(conversation, excerpt)]);
    }
    const content: Child[] = [...groups].map(([heading, rows]) =>
      make("section", {}, make("h2", { class: "group-heading" }, heading), make("ul", {}, ...rows)),
    );
    if (found.length === 0) {
      content.push(make("p", { class: "muted small empty" }, this.#search.value.trim() === "" ? "Conversations will stand here." : "Nothing found."));
    } else if (found.length > MOST) {
      content.push(make("p", { class: "muted small empty" }, `${found.length - MOST} more; search to find them.`));
    }
    if (!this.#library.lasting) {
      content.push(make("p", { class: "muted small empty" }, "This browser keeps nothing here; export what matters."));
    }
    refill(this.#list, ...content);
  }

  #row(conversation: Conversation, excerpt: string): HTMLElement {
    const current = this.#chat.conversation.id === conversation.id && /^#\/(chat\/|$)|^$/.test(location.hash);
    return make(
      "li",
      { class: "conversation" },
      make(
        "a",
        { href: `#/chat/${conversation.id}`, "aria-current": current && "page", title: conversation.title },
        make("span", { class: "conversation-title" }, conversation.title),
        excerpt !== "" && make("span", { class: "excerpt" }, excerpt),
      ),
      make(
        "details",
        { class: "menu" },
        make("summary", { "aria-label": `Actions for ${conversation.title}`, title: "Actions" }, icon("more")),
        make(
          "div",
          { class: "menu-items" },
          button("Rename", () => void this.#rename(conversation), { kind: "quiet", icon: "edit" }),
          button("Export", () => exportConversations([conversation]), { kind: "quiet", icon: "export" }),
          button("Delete", () => void this.#delete(conversation), { kind: "quiet", icon: "trash" }),
        ),
      ),
    );
  }

  async #rename(conversation: Conversation): Promise<void> {
    const title = await ask("Rename the conversation", "Title", conversation.title, "Rename");
    if (title !== undefined) {
      await this.#chat.rename(conversation, title);
    }
  }

  async #delete(conversation: Conversation): Promise<void> {
    if (await confirm("Delete this conversation?", `“${conversation.title}” will be gone for good.`, "Delete")) {
      const shown = this.#chat.conversation.id === conversation.id;
      await this.#chat.delete(conversation.id);
      if (shown) {
        this.#go.newChat();
      }
    }
    this.update();
  }

  async #import(): Promise<void> {
    const [file] = await pickFiles(".json,application/json", false);
    if (!file) {
      return;
    }
    try {
      const imported = importText(await file.text(), new Set(this.#library.all().map(({ id }) => id)));
      for (const conversation of imported) {
        await this.#library.save(conversation);
      }
      notify(imported.length === 1 ? "One conversation was imported." : `${imported.length} conversations were imported.`);
    } catch (error) {
      notifyError(error);
    }
  }
}

export function exportConversations(conversations: readonly Conversation[]): void {
  if (conversations.length === 0) {
    notify("There is nothing to export yet.");
    return;
  }
  const now = Date.now();
  const blob = new Blob([exportText(conversations, now)], { type: "application/json" });
  saveFile(`rullama-conversations-${fileDate(now)}.json`, blob);
}

function pageLink(label: string, href: string, name: IconName): HTMLAnchorElement {
  return make("a", { class: "page-link", href }, icon(name), make("span", {}, label));
}

/** Our mark, as in the icon. */
function brandMark(): Element {
  return make("img", { src: "icons/icon.svg", alt: "", width: 24, height: 24 });
}

const NEXT_THEME: Record<Theme, Theme> = { system: "light", light: "dark", dark: "system" };
const THEME_NAMES: Record<Theme, string> = { system: "as the system", light: "light", dark: "dark" };

function themeButton(preferences: Preferences): HTMLElement {
  const place = make("span");
  const update = () => {
    const { theme } = preferences;
    const next = iconButton(`Colours: ${THEME_NAMES[theme]}. Change`, theme === "dark" ? "moon" : "sun", () => {
      preferences.setTheme(NEXT_THEME[theme]);
      place.querySelector("button")?.focus();
    });
    next.classList.toggle("auto", theme === "system");
    refill(place, next);
  };
  preferences.changed.on(update);
  update();
  return place;
}
