import { effect } from "@preact/signals";
import { beforeEach, describe, expect, test, vi } from "vitest";
import type { ModelStore } from "rullama";
import { ModelHost } from "../../src/model/host";
import { filesChoice, isProjector } from "../../src/model/projector";
import { storedChoice } from "../../src/model/remembered";
import type { Preferences } from "../../src/state/preferences";

/** One engine that was asked for, with the means to end the wait for it. */
interface Asked {
  options: { context?: number; projector?: unknown; backend: string; signal: AbortSignal; onProgress: (event: object) => void; onBackend: (backend: object) => void };
  finish: () => void;
  fail: (error: unknown) => void;
}

const asked: Asked[] = [];
/** Engines in memory. */
let alive = 0;
/** The code that reading a header fails with; undefined if it succeeds. */
let refused: string | undefined;
/** Sources whose headers were read. */
const inspected: unknown[] = [];
/** The backends that they were read for. */
const inspectedFor: string[] = [];

vi.mock("rullama", () => ({
  splitUrls: (url: string) => [url],
  inspect: async (source: unknown, { backend }: { backend: string }) => {
    inspected.push(source);
    inspectedFor.push(backend);
    if (refused) {
      throw Object.assign(new Error("no"), { code: refused });
    }
  },
  Engine: {
    load: (_: unknown, options: Asked["options"]) =>
      new Promise((resolve, reject) => {
        const finish = () => {
          alive += 1;
          const unload = async () => {
            alive -= 1;
          };
          resolve({ info: { context: options.context ?? 1024 }, unload });
        };
        asked.push({ options, finish, fail: reject });
      }),
  },
}));

const settle = () => new Promise((resolve) => setTimeout(resolve));

/** Preferences that remember no projector. */
const NO_PROJECTORS = { projectorOf: () => undefined, setProjector: () => {}, forgetProjectors: () => {} };

function makeHost(context: number | null = null, store: Partial<ModelStore> = {}, remembered: Partial<Preferences> = {}): ModelHost {
  const settings = { context, backend: "auto" };
  const preferences = { settings, ...NO_PROJECTORS, setLastModel: () => {}, change: (part: object) => Object.assign(settings, part), ...remembered } as unknown as Preferences;
  return new ModelHost(store as ModelStore, preferences);
}

const stored = (name: string) => ({ kind: "stored" as const, names: [name] });

describe("the host of the model", () => {
  beforeEach(() => {
    asked.length = 0;
    inspected.length = 0;
    inspectedFor.length = 0;
    alive = 0;
    refused = undefined;
    vi.stubGlobal("reportError", vi.fn());
    vi.stubGlobal("location", { href: "http://localhost/", origin: "http://localhost" });
    vi.stubGlobal("fetch", async () => new Response("GGUF"));
  });

  test("leaves the context to the engine unless one was chosen", async () => {
    for (const [context, expected] of [[null, {}], [2048, { context: 2048 }]] as const) {
      const host = makeHost(context);
      const done = host.load(stored("a"));
      await settle();
      const { options } = asked.at(-1) as Asked;
      expect("context" in options ? { context: options.context } : {}).toEqual(expected);
      asked.at(-1)?.finish();
      await done;
    }
  });

  test("a model is checked and loaded for the backend of the settings, which a load can change", async () => {
    const host = makeHost();
    const first = host.load(stored("a"));
    await settle();
    asked[0]?.finish();
    await first;
    const second = host.load(stored("b"), { backend: "cpu" });
    await settle();
    expect(host.state).toMatchObject({ kind: "busy", on: "cpu", planned: ["compile"] });
    asked[1]?.options.onProgress({ status: "upload", loaded: 1, total: 1 });
    expect(host.progress.stages).toEqual([]);
    asked[1]?.finish();
    await second;
    expect([asked.map(({ options }) => options.backend), inspectedFor]).toEqual([["auto", "cpu"], ["cpu"]]);
    expect(host.state).toMatchObject({ kind: "ready", settings: { backend: "cpu" } });
  });

  test("a backend that takes over is told, and the model stays", async () => {
    const host = makeHost();
    const done = host.load(stored("a"));
    await settle();
    asked[0]?.finish();
    await done;
    const before = host.state;
    let renders = 0;
    effect(() => void (host.state && (renders += 1)));
    const backend = { kind: "cpu", reason: "The GPU stopped working." };
    asked[0]?.options.onBackend(backend);
    expect([host.moved, renders]).toEqual([backend, 2]);
    expect(host.state).toEqual(before);
    await host.unload();
    expect(alive).toBe(0);
  });

  test("two quick loads leave one engine: the later one", async () => {
    const host = makeHost();
    const both = [host.load(stored("a")), host.load(stored("b"))];
    await settle();
    // The first was outdated before its turn came.
    expect(asked.length).toBe(1);
    asked[0]?.finish();
    await Promise.all(both);
    expect([alive, host.state]).toMatchObject([1, { kind: "ready", label: "b" }]);
  });

  test("an engine that comes although nobody wants it any more gives its memory back", async () => {
    const host = makeHost();
    const first = host.load(stored("a"));
    await settle();
    const second = host.load(stored("b"));
    await settle();
    expect(asked[0]?.options.signal.aborted).toBe(true);
    // It was too late to stop it.
    asked[0]?.finish();
    await settle();
    expect(alive).toBe(0);
    asked[1]?.finish();
    await Promise.all([first, second]);
    expect([alive, host.state]).toMatchObject([1, { kind: "ready", label: "b" }]);
    await host.unload();
    expect([alive, host.state.kind]).toEqual([0, "empty"]);
  });

  test("stopping ends in nothing loaded, even if it comes too late", async () => {
    const host = makeHost();
    const done = host.load(stored("a"));
    await settle();
    host.cancel();
    asked[0]?.finish();
    await done;
    expect([alive, host.state.kind]).toEqual([0, "empty"]);
  });

  test("whoever waits for an engine gets the one that was wanted last", async () => {
    const host = makeHost();
    void host.load(stored("a"));
    await settle();
    const ready = host.ready();
    void host.load(stored("b"));
    await settle();
    asked[0]?.fail(Object.assign(new Error("stopped"), { code: "cancelled" }));
    await settle();
    asked[1]?.finish();
    expect(await ready).toBe(host.engine);
    expect(host.state).toMatchObject({ kind: "ready", label: "b" });
  });

  test("stored files are deleted, those of the model that runs as well, and are not remembered", async () => {
    const deleted: string[] = [];
    const setLastModel = vi.fn();
    const store = { delete: async (name: string) => void deleted.push(name) };
    const host = makeHost(null, store, { setLastModel, lastModel: ["a"] });
    const done = host.load(stored("a"));
    await settle();
    asked[0]?.finish();
    await done;
    await host.delete(["a"]);
    expect([alive, host.state.kind, deleted]).toEqual([0, "empty", ["a"]]);
    expect(setLastModel).toHaveBeenLastCalledWith(undefined);
  });

  describe("while a model is ready", () => {
    const failing = (code: string) => async () => {
      throw Object.assign(new Error("no"), { code });
    };
    const address = { kind: "address" as const, url: "/models/b", name: "b", keep: true };
    const readyHost = async (store: object) => {
      const host = makeHost(null, { list: async () => [], ...store } as Partial<ModelStore>);
      const done = host.load(stored("a"));
      await settle();
      asked[0]?.finish();
      await done;
      return host;
    };

    test("another that can't be downloaded leaves it as it is", async () => {
      const host = await readyHost({ download: failing("source.status") });
      const { engine } = host;
      await host.load(address);
      expect([alive, asked.length, host.engine]).toEqual([1, 1, engine]);
      expect({ state: host.state, failure: host.failure }).toMatchObject({ state: { kind: "ready", label: "a" }, failure: { error: { code: "source.status" }, choice: address } });
      host.dismiss();
      expect([host.state.kind, host.failure]).toEqual(["ready", undefined]);
    });

    test("stopping while another is downloaded leaves it as it is", async () => {
      const host = await readyHost({ download: failing("cancelled") });
      await host.load(address);
      expect([alive, host.state, host.failure]).toMatchObject([1, { kind: "ready", label: "a" }, undefined]);
    });

    test.each(["model.unsupported", "format.unknown", "memory.too_large"])("another whose header gives %s is neither downloaded nor takes its place", async (code) => {
      const download = vi.fn();
      const host = await readyHost({ download });
      const states: string[] = [];
      effect(() => void states.push(host.state.kind));
      refused = code;
      await host.load(address);
      expect([download.mock.calls, alive, states]).toEqual([[], 1, ["ready"]]);
      expect(host.failure).toMatchObject({ error: { code, details: { file: "b" } }, choice: address });
    });

    test("a file that isn't a model changes nothing, and is named", async () => {
      const host = await readyHost({});
      const { engine } = host;
      await host.load({ kind: "files", files: [new File(["%PDF-1.7"], "notes.pdf")], keep: true });
      expect([host.engine, inspected, asked.length]).toEqual([engine, [], 1]);
      expect(host.failure).toMatchObject({ error: { code: "gguf.not_gguf", details: { file: "notes.pdf" } } });
    });

    test("a page at the address of a model changes nothing, and is not downloaded", async () => {
      vi.stubGlobal("fetch", async () => new Response("<!doctype html>"));
      const download = vi.fn();
      const host = await readyHost({ download });
      await host.load(address);
      expect([download.mock.calls, host.state.kind, host.failure?.error]).toMatchObject([[], "ready", { code: "gguf.not_gguf" }]);
    });

    test("a message during a check is answered by it", async () => {
      let answer: (response: Response) => void = () => {};
      const host = await readyHost({ list: async () => [] });
      vi.stubGlobal("fetch", () => new Promise((resolve) => (answer = resolve)));
      const loading = host.load(address);
      await settle();
      expect(host.checking).toEqual({ label: "b" });
      expect(await host.ready()).toBe(host.engine);
      answer(new Response("no", { status: 404 }));
      await loading;
      expect([host.checking, host.failure?.error]).toMatchObject([undefined, { code: "source.status", details: { status: 404 } }]);
    });

    test.each([["gguf.malformed", true], ["memory.too_large", false]] as const)("another that fails with %s while it is loaded makes room for it again", async (code, useless) => {
      const remove = vi.fn(async () => {});
      const host = await readyHost({ download: async () => ({ name: "b" }), delete: remove });
      const done = host.load(address);
      await settle();
      expect(alive).toBe(0);
      asked[1]?.fail(Object.assign(new Error("no"), { code }));
      await settle();
      // A file that can never be used is not kept.
      expect(remove.mock.calls).toEqual(useless ? [["b"]] : []);
      asked[2]?.finish();
      await done;
      expect([alive, host.state, host.failure]).toMatchObject([1, { kind: "ready", label: "a" }, { error: { code } }]);
      expect(host.failure?.stored).toEqual(useless ? undefined : ["b"]);
    });

    test("a context that doesn't fit leaves it with the old one", async () => {
      const settings: { context: number | null } = { context: 512 };
      const host = new ModelHost({} as ModelStore, { settings, ...NO_PROJECTORS, setLastModel: () => {}, change: () => {} } as unknown as Preferences);
      const first = host.load(stored("a"));
      await settle();
      asked[0]?.finish();
      await first;
      settings.context = 4096;
      const second = host.load(stored("a"));
      await settle();
      asked[1]?.fail(Object.assign(new Error("no"), { code: "memory.too_large" }));
      await settle();
      expect(asked[2]?.options.context).toBe(512);
      asked[2]?.finish();
      await second;
      expect({ state: host.state, failure: host.failure }).toMatchObject({ state: { kind: "ready", settings: { context: 512 } }, failure: { error: { code: "memory.too_large" } } });
    });

    test("if it can't come back, the next message tries it again and not the bad file", async () => {
      const host = await readyHost({ download: async () => ({ name: "b" }), delete: async () => {} });
      const done = host.load(address);
      await settle();
      asked[1]?.fail(Object.assign(new Error("no"), { code: "model.invalid" }));
      await settle();
      asked[2]?.fail(Object.assign(new Error("no"), { code: "memory.exhausted" }));
      await done;
      expect(host.state).toMatchObject({ kind: "failed", error: { code: "model.invalid" } });
      expect(host.atHand).toEqual(stored("a"));
      const ready = host.ready();
      await settle();
      asked[3]?.finish();
      await ready;
      expect(host.state).toMatchObject({ kind: "ready", label: "a" });
    });

    test("what replaces its file finds it free", async () => {
      const seen: number[] = [];
      const host = await readyHost({
        download: async () => {
          seen.push(alive);
          return { name: "a" };
        },
        list: async () => [],
      });
      const done = host.load({ ...address, name: "a", replace: true });
      await settle();
      asked[1]?.finish();
      await done;
      expect([seen, alive, host.state]).toMatchObject([[0], 1, { kind: "ready", label: "a" }]);
    });
  });

  test("a stored model that can never be loaded is not loaded again for the next message", async () => {
    const host = makeHost(null, {}, { lastModel: ["a"], usedModel: true });
    const done = host.load(stored("a"));
    await settle();
    asked[0]?.fail(Object.assign(new Error("no"), { code: "storage.corrupt" }));
    await done;
    expect([host.state.kind, host.atHand]).toEqual(["failed", undefined]);
    await expect(host.ready()).rejects.toMatchObject({ code: "storage.corrupt" });
    expect(asked.length).toBe(1);
  });

  test("progress never goes back", async () => {
    const host = makeHost();
    const done = host.load(stored("a"));
    await settle();
    const shares: number[] = [];
    effect(() => void shares.push(host.progress.share));
    const report = (status: string, loaded: number, total: number) => asked[0]?.options.onProgress({ status, loaded, total });
    report("upload", 0, 100);
    report("upload", 80, 100);
    report("compile", 0, 2);
    report("verify", 10, 100);
    report("upload", 100, 100);
    report("verify", 100, 100);
    report("compile", 2, 2);
    expect(shares).toEqual([...shares].sort((a, b) => a - b));
    expect([shares[0], shares.at(-1)]).toEqual([0, 1]);
    asked[0]?.finish();
    await done;
  });

  test("a stored file of another digest is replaced when told, once", async () => {
    const download = vi.fn(async (_url: string, options: { name: string; replace?: boolean }) => {
      if (!options.replace) {
        throw Object.assign(new Error("taken"), { code: "storage.exists" });
      }
      throw Object.assign(new Error("no network"), { code: "network.failed" });
    });
    const host = makeHost(null, { download, list: async () => [] } as unknown as Partial<ModelStore>);
    const choice = { kind: "address" as const, url: "/models/a", name: "a", sha256: "00", keep: true };
    await host.load(choice);
    expect(host.state).toMatchObject({ kind: "failed", error: { code: "storage.exists" } });
    await host.load({ ...choice, replace: true });
    expect(download).toHaveBeenLastCalledWith("http://localhost/models/a", expect.objectContaining({ name: "a", sha256: "00", replace: true }));
    // The old file is gone; trying again resumes the new one.
    expect(host.state).toMatchObject({ kind: "failed", error: { code: "network.failed" }, choice });
    expect(host.state).not.toHaveProperty("choice.replace");
  });
});

describe("a projector", () => {
  const file = (name: string) => new File(["GGUF"], name);

  test("is recognised by its name, also among other files", () => {
    const [model, projector] = [file("gemma.gguf"), file("mmproj-gemma-f16.gguf")];
    expect(["gemma-mmproj.gguf", "MMPROJ-x.gguf", "gemma.gguf"].map(isProjector)).toEqual([true, true, false]);
    expect(filesChoice([projector, model], true, undefined)).toEqual({ kind: "files", files: [model], keep: true, projector: { file: projector } });
    expect(filesChoice([model], false, undefined)).toEqual({ kind: "files", files: [model], keep: false });
    // Alone it is for the model that is loaded.
    expect(filesChoice([projector], false, stored("a"))).toEqual({ kind: "stored", names: ["a"], projector: { file: projector } });
    expect(filesChoice([projector], false, undefined)).toBeUndefined();
  });

  test("is checked and loaded with its model", async () => {
    [asked, inspected].forEach((list) => (list.length = 0));
    const host = makeHost();
    const projector = file("mmproj.gguf");
    const done = host.load({ kind: "files", files: [file("gemma.gguf")], keep: false, projector: { file: projector } });
    await vi.waitFor(() => expect(asked.length).toBe(1));
    expect([inspected.length, asked[0]?.options.projector]).toEqual([1, projector]);
    asked[0]?.finish();
    await done;
  });

  test("that is no GGUF file leaves everything as it was", async () => {
    asked.length = 0;
    const host = makeHost();
    await host.load({ ...stored("a"), projector: { file: new File(["PNG!"], "mmproj.gguf") } });
    const done = host.load(stored("a"));
    await vi.waitFor(() => expect(asked.length).toBeGreaterThan(0));
    asked.at(-1)?.finish();
    await done;
    await host.load({ ...stored("a"), projector: { file: new File(["PNG!"], "mmproj.gguf") } });
    expect([host.state.kind, host.failure]).toMatchObject(["ready", { error: { code: "gguf.not_gguf" } }]);
  });

  test("of a stored model is stored too, and used with it from then on", async () => {
    asked.length = 0;
    const known: Record<string, string | undefined> = {};
    const remembered = { projectorOf: (model: string) => known[model], setProjector: (model: string, name?: string) => void (known[model] = name) };
    const store = { import: async ({ name }: File) => ({ name }) as never };
    const host = makeHost(null, store, remembered);
    const done = host.load({ ...stored("a"), projector: { file: file("mmproj.gguf") } });
    await vi.waitFor(() => expect(asked.length).toBe(1));
    expect(asked[0]?.options.projector).toEqual({ stored: "mmproj.gguf" });
    asked[0]?.finish();
    await done;
    expect(storedChoice(["a"], remembered)).toEqual({ kind: "stored", names: ["a"], projector: { stored: "mmproj.gguf" } });
    expect(storedChoice(["b"], remembered)).toEqual(stored("b"));
  });

  test("that can't be used is deleted again; its model stays stored", async () => {
    asked.length = 0;
    const deleted: string[] = [];
    const store = { import: async ({ name }: File) => ({ name }) as never, delete: async (name: string) => void deleted.push(name) };
    const host = makeHost(null, store);
    const done = host.load({ ...stored("a"), projector: { file: file("mmproj.gguf") } });
    await vi.waitFor(() => expect(asked.length).toBe(1));
    asked[0]?.fail(Object.assign(new Error("no"), { code: "model.unsupported" }));
    await done;
    expect([deleted, host.state]).toMatchObject([["mmproj.gguf"], { kind: "failed", stored: ["a"] }]);
  });
});
