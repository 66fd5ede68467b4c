// Switches between the system's colours, light and dark.

import type { Theme } from "../state/preferences";
import { IconButton } from "../ui/button";
import { useParts } from "../ui/parts";

const NEXT: Record<Theme, Theme> = { system: "light", light: "dark", dark: "system" };
const NAMES: Record<Theme, string> = { system: "same as the system", light: "light", dark: "dark" };

export function ThemeButton() {
  const { preferences } = useParts();
  const { theme } = preferences;
  return (
    <IconButton
      label={`Colours: ${NAMES[theme]}. Change`}
      icon={theme === "dark" ? "moon" : "sun"}
      class={theme === "system" ? "auto" : ""}
      onClick={() => preferences.setTheme(NEXT[theme])}
    />
  );
}
