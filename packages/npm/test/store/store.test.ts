// What is kept: listing, reading, exporting, importing, deleting, verifying, repairing, and two tabs at once.

import { describe, expect, test, vi } from "vitest";
import { MemoryLocks } from "../../src/store/locks.js";
import { MemoryFiles } from "./memory-files.js";
import { keyOf, keysIn, nameOfKey, nameOfUrl } from "../../src/store/names.js";
import type { StoreProgress } from "../../src/store/progress.js";
import { parseRecord } from "../../src/store/record.js";
import { FakeServer, digest, noise } from "./fake-server.js";
import { BLOCK, PART, URL_1, failure, makeStore } from "./tools.js";

const CONTENT = noise(10 * PART + 321);
const NAME = "model.gguf";

async function stored(content = CONTENT) {
  const server = new FakeServer(content);
  const made = makeStore(server);
  await made.store.download(URL_1);
  server.sent = 0;
  return { ...made, server };
}

describe("names", () => {
  test("become file names and come back", () => {
    for (const name of ["gemma4:e2b", "a/b c.gguf", "..", ".", "*~'!()", "ü"]) {
      const key = keyOf(name);
      expect(key).toMatch(/^[A-Za-z0-9%._-]+$/);
      expect(nameOfKey(key)).toBe(name);
    }
    expect(keyOf("x".repeat(5000)).length).toBeLessThanOrEqual(180);
    expect(keyOf("x".repeat(5000))).not.toBe(keyOf("x".repeat(5001)));
    expect(keysIn(["a.json", "a.part", "b.file", "other.txt", ".json"])).toEqual(["a", "b"]);
    expect(nameOfUrl("https://h.example/a/b%20c.gguf?download=true#x")).toBe("b c.gguf");
    expect(nameOfUrl("/models/tiny.gguf")).toBe("tiny.gguf");
    for (const name of ["", "\ud800"]) expect(() => keyOf(name)).toThrow(expect.objectContaining({ code: "option.wrong_type" }));
  });
});

describe("records", () => {
  test("that do not hold together are none", async () => {
    const { files } = await stored();
    const record = JSON.parse((await files.readText("model.gguf.json"))!);
    expect(parseRecord(JSON.stringify(record))).toBeDefined();
    const broken = [
      { stored: -1 }, { stored: 5 }, { version: 1 }, { blocks: [] }, { place: "elsewhere" }, { parts: [] }, { parts: ["xyz"] }, { state: "00" }, { partBytes: 0 },
      { complete: 1 }, { bytes: 3 }, { sha256: "short" }, { name: 7 },
    ];
    for (const change of broken) expect(parseRecord(JSON.stringify({ ...record, ...change })), JSON.stringify(change)).toBeUndefined();
    for (const text of ["", "null", "[]", "{", '"text"']) expect(parseRecord(text)).toBeUndefined();
  });
});

describe("reading", () => {
  test("gives any bytes, and an error beyond the end or after closing", async () => {
    const { store } = await stored();
    const source = await store.source(NAME);
    expect(source.length).toBe(CONTENT.length);
    expect(source.name).toBe(NAME);
    expect(await source.read(0, CONTENT.length)).toEqual(CONTENT);
    expect(await source.read(CONTENT.length - 3, 3)).toEqual(CONTENT.slice(-3));
    expect(await source.read(7, 0)).toEqual(new Uint8Array());
    expect((await failure(source.read(CONTENT.length - 3, 4))).code).toBe("source.out_of_range");
    source.close!();
    expect((await failure(source.read(0, 1))).code).toBe("storage.missing");
  });

  test("remembers when it was last used", async () => {
    const { store } = await stored();
    const before = (await store.list())[0]!.usedAt;
    const now = vi.spyOn(Date, "now").mockReturnValue(before + 1234);
    (await store.source(NAME)).close!();
    now.mockRestore();
    expect((await store.list())[0]!.usedAt).toBe(before + 1234);
  });

  test("takes neither a missing nor a half file nor one cut short", async () => {
    const { store, files } = await stored();
    expect((await failure(store.source("other"))).code).toBe("storage.missing");
    files.contents.set("model.gguf.file", CONTENT.slice(0, -1));
    expect((await failure(store.source(NAME))).code).toBe("storage.corrupt");
    expect((await failure(store.export(NAME))).code).toBe("storage.corrupt");
    expect((await store.list())[0]!.complete).toBe(false);

    const server = new FakeServer(CONTENT);
    server.breaks = [3000, 0, 0, 0];
    const half = makeStore(server);
    await failure(half.store.download(URL_1));
    expect((await failure(half.store.source(NAME))).code).toBe("storage.missing");
    expect((await failure(half.store.export(NAME))).code).toBe("storage.missing");
    expect((await failure(half.store.verify(NAME))).code).toBe("storage.missing");
  });

  test("a whole file that lost bytes is fetched anew when asked for", async () => {
    const { store, files, server } = await stored();
    files.contents.set("model.gguf.file", CONTENT.slice(0, -1));
    expect((await store.download(URL_1)).complete).toBe(true);
    expect(server.sent).toBe(CONTENT.length);
  });

  test("exports as a file under its own name", async () => {
    const { store } = await stored();
    const file = await store.export(NAME);
    expect(file.name).toBe(NAME);
    expect(new Uint8Array(await file.arrayBuffer())).toEqual(CONTENT);
  });
});

describe("reading what was damaged", () => {
  test("finds any byte that is not as it was stored, when its block is read", async () => {
    const { store, files } = await stored();
    const file = files.contents.get("model.gguf.file")!;
    for (const at of [0, BLOCK - 1, BLOCK, 5 * PART + 77, CONTENT.length - 1]) {
      const source = await store.source(NAME);
      file[at]! ^= 1;
      const offset = Math.floor(at / BLOCK) * BLOCK;
      const length = Math.min(BLOCK, CONTENT.length - offset);
      // Also when another byte of the block is asked for, or much more.
      for (const [from, count] of [[offset, 1], [offset + length - 1, 1], [0, CONTENT.length]] as const) {
        const error = await failure(source.read(from, count));
        expect(error.code).toBe("storage.corrupt");
        expect(error.details.damaged).toEqual([{ offset, length }]);
      }
      file[at]! ^= 1;
      expect(await source.read(offset, 1)).toEqual(CONTENT.slice(offset, offset + 1));
      source.close!();
    }
  });

  test("reads every byte once, and tells how much of the file has been checked", async () => {
    const { files, store } = await stored();
    let read = 0;
    const openRead = files.openRead.bind(files);
    files.openRead = async (name) => {
      const file = await openRead(name);
      return { ...file, read: (at, length) => ((read += length), file.read(at, length)) };
    };
    const seen: StoreProgress[] = [];
    const source = await store.source(NAME, { onProgress: (progress) => seen.push(progress) });
    const step = 3 * BLOCK + 10;
    for (let at = 0; at < CONTENT.length; at += step) {
      const length = Math.min(step, CONTENT.length - at);
      expect(await source.read(at, length)).toEqual(CONTENT.slice(at, at + length));
    }
    // What was checked with the end of one read is read again as the start of the next, and that is all.
    expect(read).toBeLessThan(CONTENT.length * 1.4);
    expect(seen.at(-1)).toEqual({ status: "verify", file: NAME, loaded: CONTENT.length, total: CONTENT.length, progress: 1, overall: 1 });
    read = 0;
    await source.read(5, 7);
    expect(read).toBe(7);
  });
});

describe("importing", () => {
  test("stores a file of the user's, checked like any other", async () => {
    const { store } = makeStore();
    const model = await store.import(new File([CONTENT.slice()], "mine.gguf"));
    expect(model).toMatchObject({ name: "mine.gguf", complete: true, bytes: CONTENT.length, sha256: digest(CONTENT) });
    expect(model.url).toBeUndefined();
    expect(await (await store.source("mine.gguf")).read(0, CONTENT.length)).toEqual(CONTENT);
    expect((await failure(store.import(new Blob([])))).code).toBe("option.wrong_type");
    const wrong = store.import(new Blob([CONTENT.slice()]), { name: "b", sha256: digest(noise(3)) });
    expect((await failure(wrong)).code).toBe("storage.corrupt");
  });

  test("of another file under the same name needs `replace`", async () => {
    const { store } = makeStore();
    await store.import(new File([CONTENT.slice()], "mine.gguf"));
    const other = new File([noise(50)], "mine.gguf");
    expect((await failure(store.import(other))).code).toBe("storage.exists");
    expect((await store.import(other, { replace: true })).bytes).toBe(50);
  });

  test("goes on with the same file and starts again with another", async () => {
    const files = new MemoryFiles();
    const { store } = makeStore(undefined, { files });
    const file = new File([CONTENT.slice()], "mine.gguf", { lastModified: 1 });
    const control = new AbortController();
    const write = files.openWrite.bind(files);
    let written = 0;
    files.openWrite = async (name) => {
      const writer = await write(name);
      return { ...writer, write: async (bytes, at) => {
        await writer.write(bytes, at);
        written += bytes.length;
        if (written >= 3 * PART) control.abort();
      } };
    };
    expect((await failure(store.import(file, { signal: control.signal }))).code).toBe("cancelled");
    written = 0;
    await store.import(file);
    expect(written).toBeLessThan(CONTENT.length);
    expect((await store.verify("mine.gguf")).sha256).toBe(digest(CONTENT));
  });

  test("of a file that cannot be read says so", async () => {
    const { store } = makeStore();
    const blob = new File([CONTENT.slice()], "mine.gguf");
    Object.defineProperty(blob, "slice", { value: () => ({ stream: () => new ReadableStream({ pull: (c) => c.error(new Error("gone")) }) }) });
    expect((await failure(store.import(blob))).code).toBe("source.io");
  });
});

describe("verifying", () => {
  test("finds any damaged byte and says where", async () => {
    const { store, files } = await stored();
    expect(await store.verify(NAME)).toEqual({ name: NAME, bytes: CONTENT.length, sha256: digest(CONTENT), repaired: [] });
    const file = files.contents.get("model.gguf.file")!;
    for (const at of [0, 1, PART - 1, PART, 5 * PART + 77, 10 * PART - 1, 10 * PART, CONTENT.length - 1]) {
      file[at]! ^= 1;
      const error = await failure(store.verify(NAME));
      expect(error.code).toBe("storage.corrupt");
      expect(error.message).toContain(NAME);
      const offset = Math.floor(at / BLOCK) * BLOCK;
      expect(error.details.damaged).toEqual([{ offset, length: Math.min(BLOCK, CONTENT.length - offset) }]);
      file[at]! ^= 1;
    }
    await store.verify(NAME);
  });

  test("repairs damaged blocks alone, neighbours at once", async () => {
    const { store, files, server } = await stored();
    const file = files.contents.get("model.gguf.file")!;
    file[3 * PART]! ^= 1;
    file[3 * PART + BLOCK]! ^= 1;
    file[CONTENT.length - 1]! ^= 1;
    server.requests = [];
    const report = await store.verify(NAME, { repair: true });
    expect(report.repaired).toEqual([{ offset: 3 * PART, length: 2 * BLOCK }, { offset: CONTENT.length - 1, length: 1 }]);
    expect(server.requests.length).toBe(2);
    expect(server.sent).toBe(2 * BLOCK + 1);
    expect(files.contents.get("model.gguf.file")).toEqual(CONTENT);
    expect((await store.verify(NAME, { repair: true })).repaired).toEqual([]);
  });

  test("repairs a file cut short or grown", async () => {
    const { store, files } = await stored();
    for (const content of [CONTENT.slice(0, 2 * PART + 5), new Uint8Array([...CONTENT, 1, 2, 3])]) {
      files.contents.set("model.gguf.file", content);
      expect((await failure(store.verify(NAME))).code).toBe("storage.corrupt");
      await store.verify(NAME, { repair: true });
      expect(files.contents.get("model.gguf.file")).toEqual(CONTENT);
    }
  });

  test("never repairs with bytes of another file or another place", async () => {
    const { store, files, server } = await stored();
    const damage = CONTENT.slice();
    damage[5 * PART]! ^= 1;
    files.contents.set("model.gguf.file", damage.slice());
    server.ignoresRanges = true;
    expect((await failure(store.verify(NAME, { repair: true }))).code).toBe("source.range_ignored");
    server.ignoresRanges = false;
    server.bytes = noise(CONTENT.length, 3);
    expect((await failure(store.verify(NAME, { repair: true }))).code).toBe("source.changed");
    expect(files.contents.get("model.gguf.file")).toEqual(damage);
  });

  test("gives up a server that does not answer", async () => {
    const server = new FakeServer(CONTENT);
    let answers = true;
    const fetching = (url: unknown, init?: RequestInit) => (answers ? server.fetch(url, init) : new Promise(() => {}));
    const { store, files } = makeStore(undefined, { fetch: fetching as typeof fetch, policy: { stall: 20 } });
    await store.download(URL_1);
    files.contents.get("model.gguf.file")![9]! ^= 1;
    answers = false;
    expect((await failure(store.verify(NAME, { repair: true }))).code).toBe("source.connection");
    const cancelling = store.verify(NAME, { repair: true, signal: AbortSignal.timeout(5) });
    expect((await failure(cancelling)).code).toBe("cancelled");
  });

  test("can be cancelled and reports progress", async () => {
    const { store } = await stored();
    const seen: string[] = [];
    await store.verify(NAME, { onProgress: ({ status, progress }) => seen.push(`${status} ${progress}`) });
    expect(seen.at(-1)).toBe("verify 1");
    expect((await failure(store.verify(NAME, { signal: AbortSignal.abort() }))).code).toBe("cancelled");
  });
});

describe("deleting", () => {
  test("leaves nothing, whole or half, and does not mind what is not there", async () => {
    const { store, files } = await stored();
    await store.delete(NAME);
    expect(files.contents.size).toBe(0);
    await store.delete(NAME);
    const server = new FakeServer(CONTENT);
    server.breaks = [3000, 0, 0, 0];
    const half = makeStore(server);
    await failure(half.store.download(URL_1));
    await half.store.delete(NAME);
    expect(half.files.contents.size).toBe(0);
  });

  test("waits for readers", async () => {
    const { store } = await stored();
    const source = await store.source(NAME);
    expect((await failure(store.delete(NAME))).code).toBe("storage.busy");
    source.close!();
    await store.delete(NAME);
    expect(await store.list()).toEqual([]);
  });

  test("also removes bytes whose record is lost", async () => {
    const { store, files } = await stored();
    files.contents.delete("model.gguf.json");
    expect(await store.list()).toMatchObject([{ name: NAME, complete: false, storedBytes: CONTENT.length }]);
    await store.delete(NAME);
    expect(await store.list()).toEqual([]);
  });
});

describe("two tabs", () => {
  function tabs(server: FakeServer) {
    const shared = { files: new MemoryFiles(), locks: new MemoryLocks() };
    return [makeStore(server, shared).store, makeStore(server, shared).store] as const;
  }

  test("fetch a file once, and both see how far it is", async () => {
    const server = new FakeServer(CONTENT);
    const [one, two] = tabs(server);
    const seen: number[] = [];
    let watched = () => {};
    const inSight = new Promise<void>((resolve) => { watched = resolve; });
    // The first half of the file comes at once; the rest waits until the other tab has seen some of it.
    server.onChunk = (sent) => (sent >= CONTENT.length / 2 ? inSight : undefined);
    const both = await Promise.all([
      one.download(URL_1),
      two.download(URL_1, {
        onProgress: ({ loaded }) => {
          seen.push(loaded);
          if (loaded > 0) watched();
        },
      }),
    ]);
    expect(both[0]).toEqual(both[1]);
    expect(server.sent).toBe(CONTENT.length);
    expect(seen.length).toBeGreaterThan(1);
    expect(seen.at(-1)).toBe(CONTENT.length);
  });

  test("when one gives up the other goes on where it stopped", async () => {
    const server = new FakeServer(CONTENT);
    const control = new AbortController();
    server.onChunk = (sent) => { if (sent >= 5000) control.abort(); };
    const [one, two] = tabs(server);
    const first = failure(one.download(URL_1, { signal: control.signal }));
    const second = two.download(URL_1);
    expect((await first).code).toBe("cancelled");
    expect((await second).sha256).toBe(digest(CONTENT));
    // The chunk that was on its way when the first gave up is all that may come twice.
    expect(server.sent).toBeLessThanOrEqual(CONTENT.length + server.chunk);
  });

  test("waiting can be cancelled, and nothing is deleted under a writer", async () => {
    const server = new FakeServer(CONTENT);
    let go = () => {};
    const begun = new Promise<void>((resolve) => {
      server.onChunk = () => { resolve(); return new Promise<void>((continued) => { go = continued; }); };
    });
    const [one, two] = tabs(server);
    const first = one.download(URL_1);
    await begun;
    expect((await failure(two.download(URL_1, { signal: AbortSignal.timeout(20) }))).code).toBe("cancelled");
    expect((await failure(two.delete(NAME))).code).toBe("storage.busy");
    expect((await failure(two.source(NAME))).code).toBe("storage.busy");
    server.onChunk = undefined;
    go();
    await first;
    expect((await two.source(NAME)).length).toBe(CONTENT.length);
  });
});
