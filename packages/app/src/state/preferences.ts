// Settings, theme, sidebar and the model used last, kept in `localStorage`. Where that is forbidden they last as long as the page.
//
// The getters read signals, so a component that uses one is updated when it changes.

import { signal } from "@preact/signals";
import { load, loadJson, parseJson, remove, save } from "./storage";
import { DEFAULTS, readSettings, restoreSettings, storedSettings, type Settings } from "./settings";

export type Theme = "system" | "light" | "dark";

const KEYS = { settings: "rullama.settings", theme: "rullama.theme", model: "rullama.model", sidebar: "rullama.sidebar", projectors: "rullama.projectors" };

export class Preferences {
  readonly #settings = signal<Settings>(restoreSettings(loadJson(KEYS.settings)));
  readonly #theme = signal<Theme>(readTheme(load(KEYS.theme)));
  readonly #sidebarHidden = signal(load(KEYS.sidebar) === "hidden");
  /** The names of the model's files as JSON; empty if the model is not stored; null if no model was ever used. */
  #model: string | null = load(KEYS.model);

  constructor() {
    this.#applyTheme();
  }

  get settings(): Readonly<Settings> {
    return this.#settings.value;
  }

  change(part: Partial<Settings>): void {
    this.#settings.value = readSettings({ ...this.#settings.peek(), ...part });
    save(KEYS.settings, JSON.stringify(storedSettings(this.#settings.peek())));
  }

  reset(): void {
    const { system, report, think } = this.#settings.peek();
    this.change({ ...DEFAULTS, system, report, think });
  }

  get theme(): Theme {
    return this.#theme.value;
  }

  setTheme(theme: Theme): void {
    this.#theme.value = theme;
    save(KEYS.theme, theme);
    this.#applyTheme();
  }

  /** Whether the list of chats is collapsed on wide screens. */
  get sidebarHidden(): boolean {
    return this.#sidebarHidden.value;
  }

  setSidebarHidden(hidden: boolean): void {
    this.#sidebarHidden.value = hidden;
    save(KEYS.sidebar, hidden ? "hidden" : "shown");
  }

  /** The stored files of the model that was used last. */
  get lastModel(): string[] | undefined {
    const names = parseJson(this.#model);
    return Array.isArray(names) && names.length > 0 && names.every((name) => typeof name === "string") ? names : undefined;
  }

  /** Whether any model was used before, including one that is not stored. */
  get usedModel(): boolean {
    return this.#model !== null;
  }

  /** Without names: the model that was used is not stored. */
  setLastModel(names: string[] | undefined): void {
    this.#model = names ? JSON.stringify(names) : "";
    save(KEYS.model, this.#model);
  }

  /** The stored projector that a stored model was used with last. */
  projectorOf(model: string): string | undefined {
    const projector = readProjectors()[model];
    return typeof projector === "string" ? projector : undefined;
  }

  setProjector(model: string, projector: string | undefined): void {
    const { [model]: _, ...others } = readProjectors();
    save(KEYS.projectors, JSON.stringify(projector === undefined ? others : { ...others, [model]: projector }));
  }

  /** Forgets a projector that was deleted. */
  forgetProjectors(names: readonly string[]): void {
    const left = Object.entries(readProjectors()).filter(([model, projector]) => !names.includes(model) && !names.includes(String(projector)));
    save(KEYS.projectors, JSON.stringify(Object.fromEntries(left)));
  }

  /** As if no model had ever been used. */
  forgetModels(): void {
    this.#model = null;
    remove(KEYS.model);
  }

  #applyTheme(): void {
    const theme = this.#theme.peek();
    if (theme === "system") {
      delete document.documentElement.dataset.theme;
    } else {
      document.documentElement.dataset.theme = theme;
    }
  }
}

function readProjectors(): Record<string, unknown> {
  const stored = loadJson(KEYS.projectors);
  return typeof stored === "object" && stored !== null ? (stored as Record<string, unknown>) : {};
}

function readTheme(stored: string | null): Theme {
  return stored === "light" || stored === "dark" ? stored : "system";
}
