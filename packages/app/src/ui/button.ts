// Buttons: with words, or with a picture and a label for those who do not see it.

import { make, type Child } from "./dom";
import { icon, type IconName } from "./icons";

interface ButtonOptions {
  kind?: "primary" | "plain" | "danger" | "quiet";
  icon?: IconName;
  disabled?: boolean;
  class?: string;
  title?: string;
}

export function button(label: Child, onclick: () => void, options: ButtonOptions = {}): HTMLButtonElement {
  const { kind = "plain", disabled = false } = options;
  const content: Child[] = [options.icon && icon(options.icon), make("span", {}, label)];
  return make(
    "button",
    { type: "button", class: `button ${kind} ${options.class ?? ""}`.trim(), disabled, title: options.title, onclick },
    ...content,
  );
}

export function iconButton(label: string, name: IconName, onclick: () => void, options: { class?: string; disabled?: boolean } = {}): HTMLButtonElement {
  return make(
    "button",
    {
      type: "button",
      class: `icon-button ${options.class ?? ""}`.trim(),
      "aria-label": label,
      title: label,
      disabled: options.disabled,
      onclick,
    },
    icon(name),
  );
}
