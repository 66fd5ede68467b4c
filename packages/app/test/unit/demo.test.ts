import { afterEach, describe, expect, test, vi } from "vitest";
import type { ModelStore } from "rullama";
import { DEMO_NAME, demoChoice, isServedDemo } from "../../src/model/demo";
import { ModelHost, type ModelChoice } from "../../src/model/host";
import { shortName } from "../../src/model/parts";
import { forget, remember, rememberedChoice } from "../../src/model/remembered";
import { Preferences } from "../../src/state/preferences";

vi.mock("rullama", () => ({
  splitUrls: (url: string) => [url],
  Engine: { load: async () => ({ info: {}, unload: async () => {} }) },
}));

const OLDER = "demo-0123abcd.gguf";

/** Preferences in a browser that has nothing yet. */
function newPreferences(): Preferences {
  const kept = new Map<string, string>();
  vi.stubGlobal("localStorage", {
    getItem: (key: string) => kept.get(key) ?? null,
    setItem: (key: string, value: string) => void kept.set(key, value),
    removeItem: (key: string) => void kept.delete(key),
  });
  vi.stubGlobal("document", { documentElement: { dataset: {} } });
  vi.stubGlobal("navigator", { onLine: true });
  vi.stubGlobal("reportError", vi.fn());
  vi.stubGlobal("location", { href: "http://localhost/" });
  return new Preferences();
}

const stored = (name: string): ModelChoice => ({ kind: "stored", names: [name] });
const address: ModelChoice = { kind: "address", url: "/models/b", keep: false };

afterEach(() => vi.unstubAllGlobals());

describe("what comes without being chosen", () => {
  test("the demo model, while no other was used", () => {
    const preferences = newPreferences();
    expect(rememberedChoice(preferences, true)).toEqual(demoChoice(true));
    expect(rememberedChoice(preferences, false)).toEqual(demoChoice(false));
    remember(preferences, demoChoice(false));
    expect(rememberedChoice(preferences, false)).toEqual(demoChoice(false));
    remember(preferences, stored(DEMO_NAME));
    expect(rememberedChoice(preferences, true)).toEqual(demoChoice(true));
  });

  test("after that the one that was used last, and the demo model no more", () => {
    const preferences = newPreferences();
    remember(preferences, stored(DEMO_NAME));
    remember(preferences, stored("a.gguf"));
    expect(rememberedChoice(preferences, true)).toEqual(stored("a.gguf"));
    expect(rememberedChoice(preferences, false)).toBe(undefined);
    // One that is not kept does not make the stored one forgotten.
    remember(preferences, address);
    expect(rememberedChoice(preferences, true)).toEqual(stored("a.gguf"));
    forget(preferences, ["another.gguf"]);
    expect(rememberedChoice(preferences, true)).toEqual(stored("a.gguf"));
    forget(preferences, ["a.gguf"]);
    expect(rememberedChoice(preferences, true)).toBe(undefined);
  });

  test("nothing, where a model was used that is not kept", () => {
    for (const before of [[], [stored(DEMO_NAME)]]) {
      const preferences = newPreferences();
      [...before, address].forEach((choice) => remember(preferences, choice));
      expect(rememberedChoice(preferences, true)).toBe(undefined);
    }
  });

  test("the demo model again, where it was deleted", () => {
    const preferences = newPreferences();
    remember(preferences, stored(DEMO_NAME));
    forget(preferences, [DEMO_NAME]);
    expect(rememberedChoice(preferences, true)).toEqual(demoChoice(true));
  });

  test("this app's demo model in place of an older one, unless there is no network", () => {
    const preferences = newPreferences();
    remember(preferences, stored(OLDER));
    expect(rememberedChoice(preferences, true)).toEqual(demoChoice(true));
    vi.stubGlobal("navigator", { onLine: false });
    expect(rememberedChoice(preferences, true)).toEqual(stored(OLDER));
  });
});

describe("the demo model", () => {
  test("is called by what it is, and told from an older one", () => {
    expect([shortName(DEMO_NAME), shortName(OLDER), shortName("demo.gguf")]).toEqual(["Demo model", "Demo model, older", "demo"]);
  });

  test("of the server is this one only if it is", () => {
    const { bytes, sha256 } = demoChoice(true) as { bytes: number; sha256: string };
    const served = (more: object) => isServedDemo({ name: "demo.gguf", url: "/models/demo.gguf", bytes, ...more });
    expect([served({}), served({ sha256 }), served({ sha256, name: "another" })]).toEqual([true, true, true]);
    expect([served({ bytes: 1 }), served({ name: "a" }), served({ sha256: "0" })]).toEqual([false, false, false]);
  });

  test("once in use, leaves none of an older app behind", async () => {
    const files = new Set([OLDER, "demo.gguf", "a.gguf"]);
    const store = {
      list: async () => [...files].map((name) => ({ name })),
      download: async (_: string, { name }: { name: string }) => {
        files.add(name);
        return { name };
      },
      delete: async (name: string) => void files.delete(name),
    };
    const preferences = newPreferences();
    const host = new ModelHost(store as unknown as ModelStore, preferences);
    await host.load(host.demo);
    await vi.waitFor(() => expect([...files].sort()).toEqual(["a.gguf", DEMO_NAME, "demo.gguf"].sort()));
    expect([host.state.kind, preferences.lastModel]).toEqual(["ready", [DEMO_NAME]]);
  });
});
