import { effect } from "@preact/signals";
import { afterEach, describe, expect, test, vi } from "vitest";
import type { ModelStore } from "rullama";
import { DEMO_NAME, demoChoice, isOtherDemo, isServedDemo } from "../../src/model/demo";
import type { ModelChoice } from "../../src/model/choice";
import { ModelHost } from "../../src/model/host";
import { shortName } from "../../src/model/parts";
import { forget, remember, rememberedChoice } from "../../src/model/remembered";
import { Preferences } from "../../src/state/preferences";

vi.mock("rullama", () => ({
  splitUrls: (url: string) => [url],
  inspect: async () => ({}),
  Engine: { load: async () => ({ info: {}, unload: async () => {} }) },
}));

interface File {
  name: string;
  url?: string;
  complete?: boolean;
}

/** A store with these files, and with whatever is downloaded unless it fails with a code. */
function storeOf(files: File[], failsWith?: string): { store: ModelStore; names: () => string[] } {
  const all = new Map(files.map((file) => [file.name, { complete: true, ...file }]));
  const store = {
    list: async () => [...all.values()],
    download: async (url: string, { name }: { name: string }) => {
      if (failsWith !== undefined) {
        throw Object.assign(new Error("it cannot be kept"), { code: failsWith });
      }
      all.set(name, { name, url, complete: true });
      return { name };
    },
    delete: async (name: string) => void all.delete(name),
  };
  return { store: store as unknown as ModelStore, names: () => [...all.keys()].sort() };
}

const OTHER = "rullama-demo-0123abcd.gguf";
const OTHER_URL = "http://localhost/assets/demo-8oIxVGdu.gguf";

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
  vi.stubGlobal("location", { href: "http://localhost/", origin: "http://localhost" });
  vi.stubGlobal("fetch", async () => new Response("GGUF"));
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

  test("this app's demo model in place of another version's, unless there is no network", () => {
    const preferences = newPreferences();
    remember(preferences, stored(OTHER));
    expect(rememberedChoice(preferences, true)).toEqual(demoChoice(true));
    vi.stubGlobal("navigator", { onLine: false });
    expect(rememberedChoice(preferences, true)).toEqual(stored(OTHER));
  });
});

describe("the demo model", () => {
  test("is called by what it is, and told from an older one", () => {
    expect([DEMO_NAME, OTHER, "demo.gguf", "demo-20250101.gguf"].map(shortName)).toEqual(["Demo model", "Demo model of another version", "demo", "demo-20250101"]);
  });

  test("of another version is only what this app fetched from its own files", () => {
    vi.stubGlobal("location", { href: "http://localhost/folder/#/models" });
    const url = "http://localhost/folder/assets/demo-8oIxVGdu.gguf";
    expect([isOtherDemo({ name: OTHER, url }), isOtherDemo({ name: DEMO_NAME, url }), isOtherDemo({ name: "demo-20250101.gguf", url })]).toEqual([true, false, false]);
    const elsewhere = [OTHER_URL, "http://example.org/folder/assets/demo-8oIxVGdu.gguf", "http://localhost/folder/assets/other.gguf", "http://localhost/folder/assets/demo-a/b.gguf"];
    expect(elsewhere.map((address) => isOtherDemo({ name: OTHER, url: address }))).toEqual([false, false, false, false]);
    expect(isOtherDemo({ name: OTHER })).toBe(false);
  });

  test("of the server is this one only if it is", () => {
    const { bytes, sha256 } = demoChoice(true) as { bytes: number; sha256: string };
    const served = (more: object) => isServedDemo({ name: "demo.gguf", url: "/models/demo.gguf", bytes, ...more });
    expect([served({}), served({ sha256 }), served({ sha256, name: "another" })]).toEqual([true, true, true]);
    expect([served({ bytes: 1 }), served({ name: "a" }), served({ sha256: "0" })]).toEqual([false, false, false]);
  });

  test("once in use, leaves none of another version behind, and nothing else goes", async () => {
    const others = ["a.gguf", "demo.gguf", "demo-20250101.gguf", "rullama-demo-20250101.gguf"];
    const { store, names } = storeOf([{ name: OTHER, url: OTHER_URL }, ...others.map((name) => ({ name, url: `https://example.org/${name}` }))]);
    const preferences = newPreferences();
    const host = new ModelHost(store, preferences);
    const seen: string[][] = [];
    effect(() => {
      void host.storeVersion;
      seen.push(names());
    });
    await host.load(host.demo);
    const kept = [...others, DEMO_NAME].sort();
    await vi.waitFor(() => expect(names()).toEqual(kept));
    expect([host.state.kind, preferences.lastModel]).toEqual(["ready", [DEMO_NAME]]);
    // The list of stored models is updated.
    await vi.waitFor(() => expect(seen.at(-1)).toEqual(kept));
  });

  test("where its server cannot be reached, is the one of another version that is stored", async () => {
    const { store, names } = storeOf([{ name: "a.gguf" }, { name: OTHER, url: OTHER_URL }], "source.connection");
    const preferences = newPreferences();
    remember(preferences, stored(OTHER));
    const host = new ModelHost(store, preferences);
    await host.ready();
    expect(host.state).toMatchObject({ kind: "ready", choice: stored(OTHER) });
    expect([host.failure, names()]).toEqual([undefined, ["a.gguf", OTHER]]);
  });

  test("that can be had in no way fails with the reason", async () => {
    newPreferences();
    const incomplete = { name: OTHER, url: OTHER_URL, complete: false };
    for (const [files, code] of [[[], "source.connection"], [[incomplete], "source.connection"], [[{ name: OTHER, url: OTHER_URL }], "source.status"]] as const) {
      const host = new ModelHost(storeOf([...files], code).store, new Preferences());
      await host.load(host.demo);
      expect(host.state).toMatchObject({ kind: "failed", error: { code }, choice: demoChoice(true) });
    }
  });

  test("that the browser cannot keep is used all the same", async () => {
    for (const code of ["storage.quota", "storage.unavailable"]) {
      const host = new ModelHost(storeOf([], code).store, newPreferences());
      await host.load(host.demo);
      expect(host.state).toMatchObject({ kind: "ready", choice: demoChoice(false) });
      // Other models are large, and stored because the user asked for it.
      await host.load({ kind: "address", url: "/models/b", keep: true });
      expect({ state: host.state, failure: host.failure }).toMatchObject({ state: { kind: "ready", choice: demoChoice(false) }, failure: { error: { code } } });
    }
  });
});

test("where the browser forbids storage, the model that was used is known while the page is open", () => {
  newPreferences();
  const forbidden = () => {
    throw new DOMException("not here", "SecurityError");
  };
  vi.stubGlobal("localStorage", { getItem: forbidden, setItem: forbidden, removeItem: forbidden });
  const preferences = new Preferences();
  expect([preferences.usedModel, preferences.lastModel]).toEqual([false, undefined]);
  preferences.setLastModel(["a.gguf"]);
  expect([preferences.usedModel, preferences.lastModel]).toEqual([true, ["a.gguf"]]);
  preferences.setLastModel(undefined);
  expect([preferences.usedModel, preferences.lastModel]).toEqual([true, undefined]);
  preferences.forgetModels();
  expect(preferences.usedModel).toBe(false);
});
