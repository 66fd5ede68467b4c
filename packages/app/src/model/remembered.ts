// The model that is loaded without being chosen: the one used last, or the demo model if no other was ever used.

import type { Preferences } from "../state/preferences";
import { DEMO_NAME, demoChoice, isDemo, isDemoChoice } from "./demo";
import type { ModelChoice } from "./choice";

/** The model to load when the user has chosen none; undefined if they have to choose. */
export function rememberedChoice(preferences: Preferences, storing: boolean): ModelChoice | undefined {
  const { lastModel: names, usedModel } = preferences;
  const stored = storing && names ? storedChoice(names, preferences) : undefined;
  if (names ? !isDemo(names[0]) : usedModel) {
    return stored;
  }
  // This version's demo model replaces another version's, unless the browser is offline. If the download fails for another
  // reason, the host falls back to the stored one.
  const isOther = names !== undefined && names[0] !== DEMO_NAME;
  return isOther && stored && !navigator.onLine ? stored : demoChoice(storing);
}

/** A stored model, with the projector that it was used with last. */
export function storedChoice(names: string[], preferences: Pick<Preferences, "projectorOf">): ModelChoice {
  const projector = preferences.projectorOf(names[0] ?? "");
  return { kind: "stored", names, ...(projector === undefined ? {} : { projector: { stored: projector } }) };
}

/** Records that a model is in use. */
export function remember(preferences: Preferences, choice: ModelChoice): void {
  const last = preferences.lastModel;
  if (choice.kind === "stored") {
    preferences.setLastModel(choice.names);
    const { names: [model = ""], projector } = choice;
    preferences.setProjector(model, projector && "stored" in projector ? projector.stored : undefined);
  } else if (!isDemoChoice(choice) && (last === undefined || isDemo(last[0]))) {
    // A user who has used another model should not get the demo model without asking.
    preferences.setLastModel(undefined);
  }
}

/** Records that stored files were deleted. */
export function forget(preferences: Preferences, names: readonly string[]): void {
  preferences.forgetProjectors(names);
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
