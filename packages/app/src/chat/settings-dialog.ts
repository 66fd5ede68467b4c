// The settings: how replies are written, what the model is told to be, how much it can keep in mind.

import type { ModelHost } from "../model/host";
import type { Server } from "../model/server";
import type { Preferences } from "../state/preferences";
import { correction, DEFAULTS, FIELDS, readNumber, type NumberField } from "../state/settings";
import { count } from "../text/format";
import { button, iconButton } from "../ui/button";
import { openDialog } from "../ui/dialog";
import { make, type Child } from "../ui/dom";
import type { ChatController } from "./controller";

export interface SettingsParts {
  preferences: Preferences;
  chat: ChatController;
  host: ModelHost;
  server: Server;
}

export function openSettings(parts: SettingsParts): void {
  const { preferences, chat, host, server } = parts;
  const { settings } = preferences;
  const system = make("textarea", { class: "input", rows: 4, placeholder: "You are a helpful assistant." });
  system.value = chat.conversation.system;
  system.addEventListener("change", () => void chat.setSystem(system.value));
  const forAll = make("input", { type: "checkbox" });
  forAll.checked = settings.system !== "" && settings.system === chat.conversation.system;
  const keepSystem = () => preferences.change({ system: forAll.checked ? system.value : "" });
  forAll.addEventListener("change", keepSystem);
  system.addEventListener("change", () => forAll.checked && keepSystem());
  const reset = (close: (result: string) => void) => () => {
    preferences.reset();
    close("");
    openSettings(parts);
  };

  const context = FIELDS.find(({ name }) => name === "context") as NumberField;
  const fields = FIELDS.filter((field) => field !== context);

  openDialog(
    "Settings",
    (close) => [
      iconButton("Close", "close", () => close(""), { class: "dialog-close" }),
      make(
        "div",
        { class: "panel-body" },
        section(
          "This conversation",
          make("label", { class: "field" }, make("span", {}, "System prompt"), system),
          make("label", { class: "check" }, forAll, make("span", {}, "Begin new conversations with it")),
        ),
        section(
          "Replies",
          toggle("think", "Think first", "Slower, and better at hard questions.", preferences),
          ...fields.map((field) => numberField(field, preferences)),
        ),
        section("Loading", numberField(context, preferences), contextNote(preferences, host, close)),
        // Somewhere else there is nobody to report to.
        (server.ours || settings.report) &&
          section(
            "This server",
            toggle("report", "Report errors to this server", "Its log gets what went wrong and in which browser; never what is said in a conversation.", preferences),
          ),
        make("div", { class: "row end" }, button("Reset to defaults", reset(close))),
      ),
    ],
    { class: "panel" },
  );
}

function section(title: string, ...children: Child[]): HTMLElement {
  return make("section", { class: "settings-section" }, make("h3", {}, title), ...children);
}

function help(text: string): HTMLElement {
  return make("small", { class: "muted" }, text);
}

function toggle(name: "think" | "report", label: string, text: string, preferences: Preferences): HTMLElement {
  const input = make("input", { type: "checkbox", class: "toggle", role: "switch", "data-setting": name });
  input.checked = preferences.settings[name];
  input.addEventListener("change", () => preferences.change({ [name]: input.checked }));
  return make("label", { class: "check spread" }, make("span", {}, make("span", {}, label), help(text)), input);
}

function numberField(field: NumberField, preferences: Preferences): HTMLElement {
  const value = preferences.settings[field.name];
  const input = make("input", {
    type: "text",
    inputmode: field.whole ? "numeric" : "decimal",
    class: "input number",
    placeholder: field.empty,
    value: value === null ? "" : value,
    "data-setting": field.name,
  });
  const note = make("small", { class: "correction", role: "status" });
  input.addEventListener("change", () => {
    const read = readNumber(field, input.value);
    note.textContent = correction(field, input.value) ?? "";
    if (read !== undefined) {
      preferences.change({ [field.name]: read });
    }
    const now = preferences.settings[field.name];
    input.value = now === null ? "" : String(now);
  });
  // Arrows step, as in a number field, which would show what its browser's language makes of a point.
  input.addEventListener("keydown", (event) => {
    const direction = event.key === "ArrowUp" ? 1 : event.key === "ArrowDown" ? -1 : 0;
    if (direction !== 0) {
      event.preventDefault();
      const now = preferences.settings[field.name] ?? DEFAULTS[field.name] ?? field.start ?? field.least;
      input.value = String(Number((now + direction * field.step).toFixed(4)));
      input.dispatchEvent(new Event("change"));
    }
  });
  return make("label", { class: "field number-field" }, make("span", {}, make("span", {}, field.label), help(field.help), note), input);
}

/** Another context size needs the model to be loaded again. */
function contextNote(preferences: Preferences, host: ModelHost, close: (result: string) => void): HTMLElement {
  const note = make("div", { class: "row between", "aria-live": "polite" });
  const update = () => {
    const { state } = host;
    const wanted = preferences.settings.context;
    note.replaceChildren();
    if (state.kind === "ready" && wanted !== state.context && wanted !== state.engine.info.context) {
      note.append(
        make("small", { class: "muted" }, `${count(state.engine.info.context)} now; it changes when the model is loaded.`),
        button("Load again", () => {
          close("");
          void host.load(state.choice);
        }),
      );
    }
  };
  const forget = preferences.changed.on(() => (note.isConnected ? update() : forget()));
  update();
  return note;
}
