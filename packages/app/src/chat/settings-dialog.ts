// The settings: how replies are written, what the model is told to be, how much it can keep in mind.

import type { ModelHost } from "../model/host";
import type { Preferences } from "../state/preferences";
import { DEFAULTS, FIELDS, readNumber, type NumberField } from "../state/settings";
import { button, iconButton } from "../ui/button";
import { openDialog } from "../ui/dialog";
import { make, type Child } from "../ui/dom";
import type { ChatController } from "./controller";

export function openSettings(preferences: Preferences, chat: ChatController, host: ModelHost): void {
  const { settings } = preferences;
  const system = make("textarea", { class: "input", rows: 4, placeholder: "You are a helpful assistant." });
  system.value = chat.conversation.system;
  system.addEventListener("change", () => void chat.setSystem(system.value));
  const forAll = make("input", { type: "checkbox" });
  forAll.checked = settings.system !== "" && settings.system === chat.conversation.system;
  const keepSystem = () => preferences.change({ system: forAll.checked ? system.value : "" });
  forAll.addEventListener("change", keepSystem);
  system.addEventListener("change", () => forAll.checked && keepSystem());

  const think = make("input", { type: "checkbox", class: "toggle", role: "switch" });
  think.checked = settings.think;
  think.addEventListener("change", () => preferences.change({ think: think.checked }));

  const context = FIELDS.find(({ name }) => name === "context") as NumberField;
  const fields = FIELDS.filter((field) => field !== context);

  openDialog(
    "Settings",
    (close) => [
      iconButton("Close", "close", () => close(""), { class: "dialog-close" }),
      section(
        "This conversation",
        make("label", { class: "field" }, make("span", {}, "System prompt"), system),
        make("label", { class: "check" }, forAll, make("span", {}, "Begin new conversations with it")),
      ),
      section(
        "Replies",
        make("label", { class: "check spread" }, make("span", {}, make("span", {}, "Think first"), help("Slower, and better at hard questions.")), think),
        ...fields.map((field) => numberField(field, preferences)),
        make("div", { class: "row end" }, button("Reset to defaults", () => {
          preferences.reset();
          close("");
          openSettings(preferences, chat, host);
        })),
      ),
      section("Loading", numberField(context, preferences), contextNote(preferences, host, close)),
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
  input.addEventListener("change", () => {
    const read = readNumber(field, input.value);
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
      const now = preferences.settings[field.name] ?? DEFAULTS[field.name] ?? field.least;
      input.value = String(Number((now + direction * field.step).toFixed(4)));
      input.dispatchEvent(new Event("change"));
    }
  });
  return make("label", { class: "field number-field" }, make("span", {}, make("span", {}, field.label), help(field.help)), input);
}

/** Another context size needs the model to be loaded again. */
function contextNote(preferences: Preferences, host: ModelHost, close: (result: string) => void): HTMLElement {
  const note = make("div", { class: "row between", "aria-live": "polite" });
  const update = () => {
    const { state } = host;
    const other = state.kind === "ready" && state.engine.info.context !== preferences.settings.context;
    note.replaceChildren();
    if (other) {
      note.append(
        make("small", { class: "muted" }, `${state.engine.info.context} now; it changes when the model is loaded.`),
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
