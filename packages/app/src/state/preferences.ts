// Settings, theme and the model used last, in `localStorage`. Where that is forbidden, they last as long as the page.

import { Emitter } from "./emitter";
import { DEFAULTS, readSettings, restoreSettings, storedSettings, type Settings } from "./settings";

export type Theme = "system" | "light" | "dark";

const KEYS = { settings: "rullama.settings", theme: "rullama.theme", model: "rullama.model" };

export class Preferences {
  readonly changed = new Emitter();
  #settings: Settings;
  #theme: Theme;
  /** The names of its files as JSON; empty if it is not stored; null if none was used yet. */
  #model: string | null;

  constructor() {
    this.#settings = restoreSettings(parse(load(KEYS.settings)));
    const theme = load(KEYS.theme);
    this.#theme = theme === "light" || theme === "dark" ? theme : "system";
    this.#model = load(KEYS.model);
    this.#applyTheme();
  }

  get settings(): Readonly<Settings> {
    return this.#settings;
  }

  change(part: Partial<Settings>): void {
    this.#settings = readSettings({ ...this.#settings, ...part });
    save(KEYS.settings, JSON.stringify(storedSettings(this.#settings)));
    this.changed.emit();
  }

  reset(): void {
    this.change({ ...DEFAULTS, system: this.#settings.system, report: this.#settings.report });
  }

  get theme(): Theme {
    return this.#theme;
  }

  setTheme(theme: Theme): void {
    this.#theme = theme;
    save(KEYS.theme, theme);
    this.#applyTheme();
    this.changed.emit();
  }

  /** The stored files of the model that was used last. */
  get lastModel(): string[] | undefined {
    const names = parse(this.#model);
    return Array.isArray(names) && names.length > 0 && names.every((name) => typeof name === "string") ? names : undefined;
  }

  /** Whether any model was used before, also one that is not stored. */
  get usedModel(): boolean {
    return this.#model !== null;
  }

  /** Without names: one was used that is not there any more. */
  setLastModel(names: string[] | undefined): void {
    this.#model = names ? JSON.stringify(names) : "";
    save(KEYS.model, this.#model);
  }

  /** As if none had ever been used. */
  forgetModels(): void {
    this.#model = null;
    remove(KEYS.model);
  }

  #applyTheme(): void {
    if (this.#theme === "system") {
      delete document.documentElement.dataset.theme;
    } else {
      document.documentElement.dataset.theme = this.#theme;
    }
  }
}

function load(key: string): string | null {
  try {
    return localStorage.getItem(key);
  } catch {
    return null;
  }
}

function save(key: string, value: string): void {
  try {
    localStorage.setItem(key, value);
  } catch {
    // Forbidden here; the page remembers it while it is open.
  }
}

function remove(key: string): void {
  try {
    localStorage.removeItem(key);
  } catch {
    // Forbidden here, so there is nothing either.
  }
}

function parse(text: string | null): unknown {
  try {
    return JSON.parse(text ?? "null");
  } catch {
    return null;
  }
}
