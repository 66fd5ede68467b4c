// Which model comes without being chosen again: the one that was used last, or the demo model while no other ever was.

import type { Preferences } from "../state/preferences";
import { DEMO_NAME, demoChoice, isDemo, isDemoChoice } from "./demo";
import type { ModelChoice } from "./host";

/** What to load where nobody has chosen anything yet; undefined if somebody should. */
export function rememberedChoice({ lastModel: names, usedModel }: Preferences, storing: boolean): ModelChoice | undefined {
  const stored: ModelChoice | undefined = storing && names ? { kind: "stored", names } : undefined;
  if (names ? !isDemo(names[0]) : usedModel) {
    return stored;
  }
  // That of another version makes room for this one's, unless it is known already that this one cannot be fetched now. Where
  // it is not, the host finds out, and takes the other one as well.
  const isOther = names !== undefined && names[0] !== DEMO_NAME;
  return isOther && stored && !navigator.onLine ? stored : demoChoice(storing);
}

/** A model is in use. */
export function remember(preferences: Preferences, choice: ModelChoice): void {
  const last = preferences.lastModel;
  if (choice.kind === "stored") {
    preferences.setLastModel(choice.names);
  } else if (!isDemoChoice(choice) && (last === undefined || isDemo(last[0]))) {
    // Whoever has used something better is not to be answered by the demo model unasked.
    preferences.setLastModel(undefined);
  }
}

/** Stored files are gone. */
export function forget(preferences: Preferences, names: readonly string[]): void {
  const last = preferences.lastModel?.[0];
  if (last === undefined || !names.includes(last)) {
    return;
  }
  if (isDemo(last)) {
    preferences.forgetModels();
  } else {
    preferences.setLastModel(undefined);
  }
}
