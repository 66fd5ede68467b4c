// Buttons with a text, and buttons with an icon and a label for screen readers.

import type { ComponentChildren, Ref } from "preact";
import { Icon, type IconName } from "./icons";

interface ButtonProps {
  children: ComponentChildren;
  onClick: () => void;
  kind?: "primary" | "plain" | "danger" | "quiet";
  icon?: IconName;
  disabled?: boolean;
  class?: string;
  title?: string;
}

export function Button({ children, onClick, kind = "plain", icon, disabled, class: name, title }: ButtonProps) {
  return (
    <button type="button" class={classes("button", kind, name)} disabled={disabled} title={title} onClick={() => onClick()}>
      {icon && <Icon name={icon} />}
      <span>{children}</span>
    </button>
  );
}

interface IconButtonProps {
  label: string;
  icon: IconName;
  onClick: () => void;
  class?: string;
  disabled?: boolean;
  controls?: string;
  expanded?: boolean;
  buttonRef?: Ref<HTMLButtonElement>;
}

export function IconButton({ label, icon, onClick, class: name, disabled, controls, expanded, buttonRef }: IconButtonProps) {
  return (
    <button
      ref={buttonRef}
      type="button"
      class={classes("icon-button", name)}
      aria-label={label}
      aria-controls={controls}
      aria-expanded={expanded}
      title={label}
      disabled={disabled}
      onClick={() => onClick()}
    >
      <Icon name={icon} />
    </button>
  );
}

/** Class names joined by spaces; empty ones are left out. */
export function classes(...names: (string | false | undefined)[]): string {
  return names.filter(Boolean).join(" ");
}
