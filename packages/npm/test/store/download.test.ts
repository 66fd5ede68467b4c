// Downloads over a server in memory that breaks, changes, lies and runs full.

import { describe, expect, test } from "vitest";
import { quota } from "../../src/store/error.js";
import { MemoryFiles } from "./memory-files.js";
import type { StoreProgress } from "../../src/store/progress.js";
import { FakeServer, digest, noise } from "./fake-server.js";
import { PART, URL_1, failure, makeStore, withFakeClock } from "./tools.js";

const FILE = "model.gguf.file";
const PART_FILE = "model.gguf.part";
const RECORD = "model.gguf.json";
const CONTENT = noise(10 * PART + 321);

describe("a download", () => {
  test("stores every byte and says what vouched for it", async () => {
    const server = new FakeServer(CONTENT);
    const { store, files } = makeStore(server);
    const seen: StoreProgress[] = [];
    const model = await store.download(URL_1, { onProgress: (progress) => seen.push(progress) });
    expect(model).toMatchObject({ name: "model.gguf", bytes: CONTENT.length, storedBytes: CONTENT.length, complete: true, sha256: digest(CONTENT), proof: "size", url: URL_1 });
    expect(files.contents.get(FILE)).toEqual(CONTENT);
    expect(files.contents.has(PART_FILE)).toBe(false);
    expect(server.sent).toBe(CONTENT.length);
    expect(seen.at(-1)).toEqual({ status: "download", file: "model.gguf", loaded: CONTENT.length, total: CONTENT.length, progress: 1, overall: 1 });
  });

  test("asks for the first byte with Range too, so that nothing is compressed", async () => {
    const server = new FakeServer(CONTENT);
    await makeStore(server).store.download(URL_1);
    expect(server.requests).toEqual([{ range: "bytes=0-", ifRange: null }]);
  });

  test.each([
    ["<!DOCTYPE html><title>Sign in</title>", "is a web page; if it was downloaded, the URL may be wrong or may need a login."],
    ["%PDF-1.7", "is a PDF document."],
    ["version https://git-lfs.github.com/spec/v1", "is a Git LFS pointer instead of the file itself."],
    ["safetensors", 'starts with "safe" instead of "GGUF".'],
    ["GG", 'starts with "GG" instead of "GGUF".'],
  ])("of something that is not a GGUF file is refused at its first bytes: %s", async (text, reason) => {
    const bytes = new Uint8Array(100_000);
    const start = new TextEncoder().encode(text);
    bytes.set(start);
    const server = new FakeServer(text.length < 4 ? start : bytes);
    // The magic number arrives in two pieces.
    server.chunk = 3;
    const { store, files } = makeStore(server);
    const error = await failure(store.download(URL_1));
    expect([error.code, error.message]).toEqual(["gguf.not_gguf", `This isn't a GGUF file: \`model.gguf\` ${reason}`]);
    expect(files.contents.size).toBe(0);
    expect(server.sent).toBeLessThan(100);
    const imported = await failure(store.import(new File([server.bytes.slice()], "mine.gguf")));
    expect([imported.code, files.contents.size]).toEqual(["gguf.not_gguf", 0]);
  });

  test("of an empty file is refused", async () => {
    const { store, files } = makeStore();
    const error = await failure(store.import(new File([], "empty.gguf")));
    expect([error.code, error.message]).toEqual(["gguf.not_gguf", "This isn't a GGUF file: `empty.gguf` is empty."]);
    expect(files.contents.size).toBe(0);
  });

  test("of a Hugging Face page stores the file that the page is about", async () => {
    const { store } = makeStore(new FakeServer(CONTENT));
    const model = await store.download("https://huggingface.co/org/repo/blob/main/model.gguf");
    expect(model).toMatchObject({ name: "model.gguf", url: "https://huggingface.co/org/repo/resolve/main/model.gguf" });
  });

  test("of several files has one progress that never goes down and ends at 1", async () => {
    const { store } = makeStore(new FakeServer(CONTENT));
    const overall: number[] = [];
    const urls = ["https://models.example/a.gguf", "https://models.example/b.gguf"];
    await store.download(urls, { onProgress: (event) => overall.push(event.overall) });
    expect(overall).toEqual([...overall].sort((a, b) => a - b));
    expect(overall.at(-1)).toBe(1);
    expect(overall).toContain(0.5);
  });

  test("with an option that does not exist is refused", async () => {
    const { store } = makeStore(new FakeServer(CONTENT));
    expect((await failure(store.download(URL_1, { sha: "1" } as never))).code).toBe("option.unknown");
    expect((await failure(store.download(URL_1, { replace: 1 } as never))).code).toBe("option.wrong_type");
    expect((await failure(store.import(new File([CONTENT.slice()], "a.gguf"), { url: "b" } as never))).code).toBe("option.unknown");
    expect((await failure(store.source("a.gguf", { signal: 1 } as never))).code).toBe("option.unknown");
    expect((await failure(store.verify("a.gguf", { fix: true } as never))).code).toBe("option.unknown");
  });

  test("is not fetched twice", async () => {
    const server = new FakeServer(CONTENT);
    const { store } = makeStore(server);
    await store.download(URL_1);
    await store.download(URL_1);
    expect(server.requests.length).toBe(1);
  });

  test("of several addresses stores each", async () => {
    const server = new FakeServer(CONTENT);
    const { store } = makeStore(server);
    const models = await store.download([URL_1, "https://models.example/model-00002-of-00002.gguf"]);
    expect(models.map((model) => model.name)).toEqual(["model.gguf", "model-00002-of-00002.gguf"]);
    expect((await failure(store.download([URL_1, URL_1], { sha256: digest(CONTENT) }))).code).toBe("option.wrong_type");
  });

  test("never mistakes another file of the same name for it", async () => {
    const server = new FakeServer(CONTENT);
    const { store } = makeStore(server);
    await store.download(URL_1);
    const other = "https://elsewhere.example/model.gguf";
    expect((await store.download(other, { sha256: digest(CONTENT) })).name).toBe("model.gguf");
    expect(server.requests.length).toBe(1);
    const error = await failure(store.download(other, { name: "model.gguf" }));
    expect(error.code).toBe("storage.exists");
    expect(error.message).toMatch(/`name`.*`replace`/);
    expect((await failure(store.download(`${URL_1}?v=2`))).code).toBe("storage.exists");
    server.bytes = noise(500, 9);
    expect((await store.download(other, { name: "model.gguf", replace: true })).sha256).toBe(digest(server.bytes));
    expect((await store.list()).length).toBe(1);
  });

  test("of another file of the same name gets a longer one, and the same each time", async () => {
    const server = new FakeServer(CONTENT);
    const { store } = makeStore(server);
    await store.download(URL_1);
    await store.import(new File([noise(5)], "mine-00001-of-00002.gguf"));
    const names = [];
    for (const url of ["https://hub.example/a/b/model.gguf", "https://hub.example/c/model.gguf", "https://hub.example/c/mine-00001-of-00002.gguf"]) {
      names.push((await store.download(url)).name);
      const { length } = server.requests;
      expect((await store.download(url)).name).toBe(names.at(-1));
      expect(server.requests.length).toBe(length);
    }
    expect(names).toEqual(["model (hub.example a b).gguf", "model (hub.example c).gguf", "mine (hub.example c)-00001-of-00002.gguf"]);
  });

  test("needs no rename to be whole", async () => {
    const files = new MemoryFiles();
    files.renames = false;
    const { store } = makeStore(new FakeServer(CONTENT), { files });
    await store.download(URL_1);
    expect((await store.list())[0]!.complete).toBe(true);
    const source = await store.source("model.gguf");
    expect(await source.read(5, 10)).toEqual(CONTENT.slice(5, 15));
  });
});

describe("a server that trickles", () => {
  // One block holds the whole file: computing digests takes real time, in which the fake clock would run on.
  const LARGE_PART = 1 << 20;

  /** Sends one byte a second, and breaks off after `each` bytes. */
  function trickle(each: number): FakeServer {
    const server = new FakeServer(CONTENT);
    server.chunk = 1;
    server.breaksAlways = each;
    server.onChunk = () => new Promise((resolve) => setTimeout(resolve, 1000));
    return server;
  }

  test.each([Infinity, 5, 1])("is given up, with a break after every %d bytes, and the download can be resumed", async (each) => {
    const server = trickle(each);
    const { store, files } = makeStore(server, { partBytes: LARGE_PART, policy: {} });
    const { result: error, seconds } = await withFakeClock(() => failure(store.download(URL_1)));
    expect(error.code).toBe("source.too_slow");
    expect(error.message).toMatch(/^The server of `model.gguf` is too slow: it sent \d+ bytes in 6\d seconds, and at least 65536 are required\.$/);
    expect(error.details.file).toBe("model.gguf");
    expect(seconds).toBeLessThan(90);
    const { sent } = server;
    expect(sent).toBeGreaterThan(30);
    expect((await store.list())[0]).toMatchObject({ complete: false, storedBytes: sent });

    server.onChunk = undefined;
    server.breaksAlways = Infinity;
    server.chunk = 1000;
    expect((await store.download(URL_1)).sha256).toBe(digest(CONTENT));
    expect(files.contents.get(FILE)).toEqual(CONTENT);
    expect(server.sent).toBe(CONTENT.length);
  });

  test("pays for the pauses that its breaks cost, even if it sends its byte at once", async () => {
    const server = trickle(1);
    server.onChunk = undefined;
    const { store } = makeStore(server, { partBytes: LARGE_PART, policy: { delay: 500 } });
    const { result: error, seconds } = await withFakeClock(() => failure(store.download(URL_1)));
    expect(error.code).toBe("source.too_slow");
    expect(seconds).toBeLessThan(90);
  });

  test("is not one that is fast enough, nor one that was away for longer than a window", async () => {
    const server = new FakeServer(CONTENT);
    server.onChunk = () => new Promise((resolve) => setTimeout(resolve, 1000));
    // Attempts without a byte, with pauses of 4, 8 and 16 seconds: they are limited by their number, not by time.
    server.breaks = [3000, 0, 0, 0];
    const { store } = makeStore(server, { partBytes: LARGE_PART, policy: { delay: 2000, longestDelay: 30_000, leastBytes: 5000, window: 10_000 } });
    const { result } = await withFakeClock(() => store.download(URL_1));
    expect(result.sha256).toBe(digest(CONTENT));
    expect(server.requests.length).toBe(5);
  });
});

describe("a broken connection", () => {
  test("at any byte costs no byte twice", async () => {
    for (let seed = 1; seed <= 15; seed++) {
      const server = new FakeServer(CONTENT, seed % 3 === 0 ? undefined : '"v1"');
      server.chunk = 1 + (seed * 97) % 1500;
      server.breaks = Array.from(noise(12, seed), (byte) => 1 + byte * 5);
      const { store, files } = makeStore(server);
      const model = await store.download(URL_1);
      expect(model.sha256).toBe(digest(CONTENT));
      expect(files.contents.get(FILE)).toEqual(CONTENT);
      expect(server.sent).toBe(CONTENT.length);
      expect(server.requests.length).toBeGreaterThan(3);
    }
  });

  test("that brings nothing is given up, and the bytes are kept", async () => {
    const server = new FakeServer(CONTENT);
    server.breaks = [3000, 0, 0, 0];
    const { store } = makeStore(server);
    const error = await failure(store.download(URL_1));
    expect(error.code).toBe("source.connection");
    expect((await store.list())[0]).toMatchObject({ complete: false, storedBytes: 3000, bytes: CONTENT.length });
    await store.download(URL_1);
    expect(server.sent).toBe(CONTENT.length);
    expect(server.requests.at(-1)).toEqual({ range: "bytes=3000-", ifRange: '"v1"' });
  });

  test("or a busy server is tried again; a refusal is not", async () => {
    const server = new FakeServer(CONTENT);
    server.statuses = [503, 0, 429];
    const { store } = makeStore(server);
    await store.download(URL_1);
    expect(server.requests.length).toBe(4);

    const refusing = new FakeServer(CONTENT);
    refusing.statuses = [404];
    const error = await failure(makeStore(refusing).store.download(URL_1));
    expect(error.code).toBe("source.status");
    expect(error.details.status).toBe(404);
    expect(refusing.requests.length).toBe(1);
  });

  test("that stays open and silent counts as broken", async () => {
    const server = new FakeServer(CONTENT);
    let stuck = true;
    server.onChunk = (sent) => (sent >= 2000 && stuck ? new Promise(() => { stuck = false; }) : undefined);
    const { store } = makeStore(server, { policy: { delay: 1, longestDelay: 1, retries: 2, stall: 40 } });
    await store.download(URL_1);
    expect(server.sent).toBe(CONTENT.length);
    expect(server.requests.length).toBe(2);
  });

  test("that stays silent counts as broken", async () => {
    const server = new FakeServer(CONTENT);
    server.breaks = [3000];
    let [before, silent] = [1, 2];
    const fetching = (url: unknown, init?: RequestInit) => {
      const heeds = silent === 2;
      if (before-- > 0 || silent-- <= 0) return server.fetch(url, init);
      return new Promise<Response>((_, reject) => heeds && init?.signal?.addEventListener("abort", () => reject(init.signal?.reason)));
    };
    const policy = { delay: 1, longestDelay: 1, retries: 3, stall: 20 };
    const { store } = makeStore(undefined, { fetch: fetching as typeof fetch, policy });
    expect((await store.download(URL_1)).complete).toBe(true);
    [before, silent] = [1, Infinity];
    server.breaks = [3000];
    const error = await failure(store.download(URL_1, { name: "other" }));
    expect(error.code).toBe("source.connection");
    expect(error.message).toContain("0.02 s");
  });

  test("to a server that has never answered is given up at once, with the reason and nothing stored", async () => {
    const server = new FakeServer(CONTENT);
    server.statuses = [0, 0];
    const { store, files } = makeStore(server);
    const refused = await failure(store.download(URL_1));
    expect([refused.code, server.requests.length]).toEqual(["source.connection", 2]);
    expect(refused.message).toBe("models.example could not be reached: fetch failed. Check the address and the network connection.");
    const requests: unknown[] = [];
    const silent = (_url: unknown, init?: RequestInit) => {
      requests.push(init);
      return new Promise<Response>((_, reject) => init?.signal?.addEventListener("abort", () => reject(init.signal?.reason)));
    };
    const other = makeStore(undefined, { fetch: silent as typeof fetch, policy: { delay: 1, longestDelay: 1, retries: 3, stall: 20 } });
    expect((await failure(other.store.download(URL_1))).code).toBe("source.connection");
    expect(requests.length).toBe(1);
    expect([files.contents.size, other.files.contents.size]).toEqual([0, 0]);
  });

  test("with a server that knows no ranges starts again, and ends when that leads nowhere", async () => {
    const server = new FakeServer(CONTENT);
    server.ignoresRanges = true;
    server.breaks = [5000];
    const { store } = makeStore(server);
    expect((await store.download(URL_1)).sha256).toBe(digest(CONTENT));
    expect(server.sent).toBe(5000 + CONTENT.length);

    const hopeless = new FakeServer(CONTENT);
    hopeless.ignoresRanges = true;
    hopeless.breaks = Array(20).fill(5000);
    expect((await failure(makeStore(hopeless).store.download(URL_1))).code).toBe("source.range_ignored");
  });

  test("with an answer from another byte is an error, not a mixture", async () => {
    const server = new FakeServer(CONTENT);
    server.breaks = [3000];
    const wrong = async (url: unknown, init?: RequestInit) => {
      const headers = new Headers(init?.headers);
      if (headers.get("Range") === "bytes=3000-") headers.set("Range", "bytes=2990-");
      return server.fetch(url, { ...init, headers });
    };
    const { store } = makeStore(undefined, { fetch: wrong as typeof fetch });
    expect((await failure(store.download(URL_1))).code).toBe("source.content_range");
  });
});

describe("a file that changes on its server", () => {
  test.each([true, false])("starts again (If-Range heeded: %s)", async (heeds) => {
    const server = new FakeServer(CONTENT);
    server.breaks = [4000, 0, 0, 0];
    const fetching = async (url: unknown, init?: RequestInit) => {
      const headers = new Headers(init?.headers);
      if (!heeds) headers.delete("If-Range");
      return server.fetch(url, { ...init, headers });
    };
    const { store, files } = makeStore(undefined, { fetch: fetching as typeof fetch });
    await failure(store.download(URL_1));
    server.bytes = noise(CONTENT.length, 7);
    server.etag = '"v2"';
    expect((await store.download(URL_1)).sha256).toBe(digest(server.bytes));
    expect(files.contents.get(FILE)).toEqual(server.bytes);
  });

  test("becoming shorter than what is stored starts again", async () => {
    const server = new FakeServer(CONTENT, undefined);
    server.breaks = [4000, 0, 0, 0];
    const { store } = makeStore(server);
    await failure(store.download(URL_1));
    server.bytes = noise(2000, 7);
    expect((await store.download(URL_1)).sha256).toBe(digest(server.bytes));
  });

  test("again and again is reported", async () => {
    const server = new FakeServer(CONTENT);
    server.breaks = Array(20).fill(2000);
    let version = 1;
    server.onChunk = (sent) => { if (sent % 2000 === 0) server.etag = `"v${++version}"`; };
    const { store } = makeStore(server, { policy: { delay: 1, longestDelay: 1, retries: 50 } });
    expect((await failure(store.download(URL_1))).code).toBe("source.changed");
  });

  test("a crash right after starting again mixes nothing", async () => {
    const server = new FakeServer(CONTENT);
    server.breaks = [4000, 0, 0, 0];
    const { store, files } = makeStore(server);
    await failure(store.download(URL_1));
    server.bytes = noise(CONTENT.length, 7);
    server.etag = '"v2"';
    // The crash: files as they are on disk when the first bytes of the new file were written.
    let crashed: Map<string, Uint8Array> | undefined;
    const write = files.openWrite.bind(files);
    files.openWrite = async (name) => {
      const writer = await write(name);
      return { ...writer, write: async (bytes, at) => {
        await writer.write(bytes, at);
        crashed ??= new Map([...files.contents].map(([key, value]) => [key, value.slice()]));
      } };
    };
    await store.download(URL_1);
    const after = new MemoryFiles();
    for (const [name, bytes] of crashed!) after.contents.set(name, bytes);
    expect(JSON.parse((await after.readText(RECORD))!).stored).toBe(0);
    const again = makeStore(server, { files: after });
    expect((await again.store.download(URL_1)).sha256).toBe(digest(server.bytes));
  });
});

describe("resuming after a crash", () => {
  test("goes on from the record, wherever it was written", async () => {
    const server = new FakeServer(CONTENT);
    server.chunk = 700;
    const { store, files } = makeStore(server);
    const snapshots: Map<string, Uint8Array>[] = [];
    const writeText = files.writeText.bind(files);
    files.writeText = async (name, text) => {
      await writeText(name, text);
      snapshots.push(new Map([...files.contents].map(([key, value]) => [key, value.slice()])));
    };
    await store.download(URL_1);
    expect(snapshots.length).toBeGreaterThan(10);
    for (const snapshot of snapshots) {
      const after = new MemoryFiles();
      for (const [name, bytes] of snapshot) after.contents.set(name, bytes);
      const { stored, complete } = JSON.parse((await after.readText(RECORD))!);
      const second = new FakeServer(CONTENT);
      const model = await makeStore(second, { files: after }).store.download(URL_1);
      expect(model.sha256).toBe(digest(CONTENT));
      expect(second.sent).toBe(complete ? 0 : CONTENT.length - stored);
    }
  });

  test("a part file shorter than its record goes back to the last part that is there", async () => {
    const server = new FakeServer(CONTENT);
    server.breaks = [5 * PART + 10, 0, 0, 0];
    const { store, files } = makeStore(server);
    await failure(store.download(URL_1));
    files.contents.set(PART_FILE, CONTENT.slice(0, 3 * PART + 5));
    server.sent = 0;
    expect((await store.download(URL_1)).sha256).toBe(digest(CONTENT));
    expect(server.sent).toBe(CONTENT.length - 3 * PART);
  });

  test("bytes that changed since are found, and fetched again with their part", async () => {
    const server = new FakeServer(CONTENT);
    server.breaks = [5 * PART + 100, 0, 0, 0];
    const { store, files } = makeStore(server);
    await failure(store.download(URL_1));
    files.contents.get(PART_FILE)![5 * PART + 3]! ^= 1;
    server.sent = 0;
    expect((await store.download(URL_1)).sha256).toBe(digest(CONTENT));
    expect(server.sent).toBe(CONTENT.length - 5 * PART);
    expect(files.contents.get(FILE)).toEqual(CONTENT);
  });

  test("a damaged record means a fresh start", async () => {
    const server = new FakeServer(CONTENT);
    server.breaks = [5000, 0, 0, 0];
    const { store, files } = makeStore(server);
    await failure(store.download(URL_1));
    await files.writeText(RECORD, (await files.readText(RECORD))!.slice(0, 50));
    expect((await store.download(URL_1)).sha256).toBe(digest(CONTENT));
  });
});

describe("a wrong file", () => {
  const other = digest(noise(5, 5));

  test("by the caller's hash is refused and nothing of it is kept", async () => {
    const { store, files } = makeStore(new FakeServer(CONTENT));
    const error = await failure(store.download(URL_1, { sha256: other }));
    expect(error.code).toBe("storage.corrupt");
    expect(error.message).toContain("model.gguf");
    expect(await store.list()).toEqual([]);
    expect(files.contents.size).toBe(0);
  });

  test.each([
    ["a labelled ETag", `"sha256:${other}"`, {}, URL_1],
    ["a header of a hub", '"x"', { "X-Linked-ETag": `"${other}"` }, URL_1],
    ["the address", '"x"', {}, `https://models.example/v2/blobs/sha256:${other}`],
    ["the escaped address", '"x"', {}, `https://models.example/v2/blobs/sha256%3A${other}`],
  ])("by %s is refused", async (_, etag, headers, url) => {
    const server = new FakeServer(CONTENT, etag);
    server.headers = headers as Record<string, string>;
    expect((await failure(makeStore(server).store.download(url))).code).toBe("storage.corrupt");
  });

  test("by an ETag that merely looks like a SHA-256 is kept, on the word of its size", async () => {
    for (const etag of [`"${other}"`, `W/"${other}"`]) {
      const server = new FakeServer(CONTENT, etag);
      const { store } = makeStore(server);
      expect(await store.download(URL_1)).toMatchObject({ complete: true, proof: "size", sha256: digest(CONTENT) });
      expect(server.sent).toBe(CONTENT.length);
    }
  });

  test("by such an ETag is refused where nobody tells the size", async () => {
    const server = new FakeServer(CONTENT, `"${other}"`);
    server.hidesSize = true;
    expect((await failure(makeStore(server).store.download(URL_1))).code).toBe("storage.corrupt");
  });

  test("a right hash is proof", async () => {
    const server = new FakeServer(CONTENT, `"${digest(CONTENT)}"`);
    expect((await makeStore(server).store.download(URL_1)).proof).toBe("sha256");
    const given = await makeStore(new FakeServer(CONTENT)).store.download(URL_1, { sha256: `sha256:${digest(CONTENT).toUpperCase()}` });
    expect(given.proof).toBe("sha256");
  });

  test("by its size is refused", async () => {
    const error = await failure(makeStore(new FakeServer(CONTENT)).store.download(URL_1, { bytes: 5 }));
    expect(error.code).toBe("source.changed");
  });

  test("longer than told is refused", async () => {
    const server = new FakeServer(CONTENT);
    const short = async (url: unknown, init?: RequestInit) => {
      const response = await server.fetch(url, init);
      return new Response(response.body, { status: 200, headers: { "Content-Length": "100" } });
    };
    const { store } = makeStore(undefined, { fetch: short as typeof fetch });
    expect((await failure(store.download(URL_1))).code).toBe("source.content_range");
  });

  test("of unknown size and hash is refused; the hash alone is enough", async () => {
    const server = new FakeServer(CONTENT);
    server.hidesSize = true;
    const { store } = makeStore(server);
    expect((await failure(store.download(URL_1))).code).toBe("source.content_range");
    expect((await store.download(URL_1, { sha256: digest(CONTENT) })).complete).toBe(true);
  });
});

describe("room", () => {
  test("is asked for before the first byte", async () => {
    const server = new FakeServer(CONTENT);
    const { store } = makeStore(server, { files: new MemoryFiles(5000) });
    const error = await failure(store.download(URL_1));
    expect(error.code).toBe("storage.quota");
    expect(error.details.needed).toBe(CONTENT.length);
    expect(error.details.free).toBeLessThanOrEqual(5000);
    expect(error.message).toContain(String(CONTENT.length));
    expect(server.sent).toBeLessThanOrEqual(server.chunk);
    expect(await store.list()).toEqual([]);
  });

  test("that ends with the record is told of the model, not of the record", async () => {
    const server = new FakeServer(CONTENT);
    const files = new MemoryFiles();
    const { store } = makeStore(server, { files });
    const writeText = files.writeText.bind(files);
    files.writeText = async (name, text) => {
      if (JSON.parse(text).stored > 3000) throw quota(name, text.length, 0);
      await writeText(name, text);
    };
    const error = await failure(store.download(URL_1));
    expect(error.code).toBe("storage.quota");
    expect(error.details.file).toBe("model.gguf");
    expect(error.details.needed).toBeGreaterThan(CONTENT.length - 5000);
    expect(error.message).not.toContain(".json");
  });

  test("that runs out on the way keeps what is stored", async () => {
    const server = new FakeServer(CONTENT);
    const files = new MemoryFiles();
    const { store } = makeStore(server, { files });
    server.onChunk = (sent) => { if (sent >= 6000) files.capacity = 0; };
    const error = await failure(store.download(URL_1));
    expect(error.code).toBe("storage.quota");
    expect(error.details.needed).toBeGreaterThan(0);
    const stored = (await store.list())[0]!.storedBytes;
    expect(stored).toBeGreaterThanOrEqual(6000);
    files.capacity = 1e9;
    server.onChunk = undefined;
    server.sent = 0;
    await store.download(URL_1);
    expect(server.sent).toBe(CONTENT.length - stored);
  });
});

describe("replacing", () => {
  const NEW = noise(7 * PART + 9, 4);

  async function outdated() {
    const server = new FakeServer(CONTENT);
    const made = makeStore(server);
    await made.store.download(URL_1);
    Object.assign(server, { bytes: NEW, etag: '"v2"', sent: 0 });
    const read = async () => {
      const source = await made.store.source("model.gguf");
      try {
        return await source.read(0, source.length);
      } finally {
        source.close!();
      }
    };
    return { ...made, server, read };
  }

  test("keeps the old file until the new one is whole, and goes on where it stopped", async () => {
    const { store, server, files, read } = await outdated();
    // The request whether the file has changed, and the two attempts to download it.
    server.statuses = [0, 0, 0];
    expect((await failure(store.download(URL_1, { replace: true }))).code).toBe("source.connection");
    expect(await read()).toEqual(CONTENT);
    server.breaks = [Infinity, 3000, 0, 0, 0];
    expect((await failure(store.download(URL_1, { replace: true }))).code).toBe("source.connection");
    expect(await read()).toEqual(CONTENT);
    expect(await store.list()).toMatchObject([{ name: "model.gguf", complete: true, sha256: digest(CONTENT) }]);
    server.breaks = [];
    const model = await store.download(URL_1, { replace: true });
    expect(model).toMatchObject({ name: "model.gguf", complete: true, sha256: digest(NEW) });
    expect(server.requests.at(-1)!.range).toBe("bytes=3000-");
    expect(await read()).toEqual(NEW);
    expect(files.contents.size).toBe(2);
  });

  test("can be done again and again, and leaves nothing but the last", async () => {
    const { store, server, files, read } = await outdated();
    for (let version = 2; version < 5; version++) {
      Object.assign(server, { bytes: noise(3 * PART + version, version), etag: `"v${version}"` });
      await store.download(URL_1, { replace: true });
      expect(await read()).toEqual(server.bytes);
      expect(files.contents.size).toBe(2);
      expect((await store.verify("model.gguf")).sha256).toBe(digest(server.bytes));
    }
    await store.delete("model.gguf");
    expect(files.contents.size).toBe(0);
  });

  test("fetches nothing where the server has the same file still", async () => {
    const server = new FakeServer(CONTENT);
    const { store } = makeStore(server);
    await store.download(URL_1);
    server.sent = 0;
    await store.download(URL_1, { replace: true });
    expect(server.sent).toBeLessThanOrEqual(2);
    expect(server.requests.at(-1)!.range).toBe("bytes=0-1");
  });

  test("does not take the server's word against a digest that is asked for, nor wait for readers of a file that stays", async () => {
    const server = new FakeServer(CONTENT);
    const { store } = makeStore(server);
    await store.download(URL_1);
    const source = await store.source("model.gguf");
    await store.download(URL_1, { replace: true });
    source.close!();
    server.bytes = NEW;
    expect((await store.download(URL_1, { replace: true, sha256: digest(NEW) })).sha256).toBe(digest(NEW));
    const { length } = server.requests;
    await store.download(URL_1, { replace: true, sha256: digest(NEW) });
    expect(server.requests.length).toBe(length);
  });

  test("says so where there is no room for both", async () => {
    const { store, files, read } = await outdated();
    files.capacity = (await files.space()).usage! + 6 * PART;
    const error = await failure(store.download(URL_1, { replace: true }));
    expect(error.code).toBe("storage.quota");
    expect(error.details).toMatchObject({ needed: NEW.length, kept: CONTENT.length });
    expect(error.message).toContain("delete it first");
    expect(await read()).toEqual(CONTENT);
  });

  test("survives a crash at any record, with the old file or the new one", async () => {
    const { store, files } = await outdated();
    const snapshots: Map<string, Uint8Array>[] = [];
    const snap = () => snapshots.push(new Map([...files.contents].map(([key, value]) => [key, value.slice()])));
    for (const method of ["writeText", "remove", "rename"] as const) {
      const original = files[method].bind(files) as (...args: unknown[]) => Promise<never>;
      files[method] = async (...args: unknown[]) => {
        const result = await original(...args);
        snap();
        return result;
      };
    }
    await store.download(URL_1, { replace: true });
    for (const snapshot of snapshots) {
      const after = new MemoryFiles();
      for (const [name, bytes] of snapshot) after.contents.set(name, bytes);
      const server = new FakeServer(NEW, '"v2"');
      const again = makeStore(server, { files: after }).store;
      const source = await again.source("model.gguf");
      expect([digest(CONTENT), digest(NEW)]).toContain(digest(await source.read(0, source.length)));
      source.close!();
      expect((await again.download(URL_1, { replace: true })).sha256).toBe(digest(NEW));
      await again.delete("model.gguf");
      expect(after.contents.size).toBe(0);
    }
  });
});

describe("cancelling", () => {
  test("stops at once, keeps the bytes, and says so", async () => {
    const server = new FakeServer(CONTENT);
    const { store } = makeStore(server);
    const control = new AbortController();
    server.onChunk = (sent) => { if (sent >= 4000) control.abort(); };
    const error = await failure(store.download(URL_1, { signal: control.signal }));
    expect(error.code).toBe("cancelled");
    const stored = (await store.list())[0]!.storedBytes;
    expect(stored).toBeGreaterThan(0);
    server.onChunk = undefined;
    server.sent = 0;
    await store.download(URL_1);
    expect(server.sent).toBe(CONTENT.length - stored);
  });

  test("works on a silent connection, while waiting to try again, and beforehand", async () => {
    const silent = new FakeServer(CONTENT);
    const control = new AbortController();
    silent.onChunk = () => { setTimeout(() => control.abort(), 5); return new Promise(() => {}); };
    expect((await failure(makeStore(silent).store.download(URL_1, { signal: control.signal }))).code).toBe("cancelled");

    const busy = new FakeServer(CONTENT);
    busy.statuses = [503];
    const patient = makeStore(busy, { policy: { delay: 60_000, longestDelay: 60_000 } });
    expect((await failure(patient.store.download(URL_1, { signal: AbortSignal.timeout(20) }))).code).toBe("cancelled");

    const unused = new FakeServer(CONTENT);
    expect((await failure(makeStore(unused).store.download(URL_1, { signal: AbortSignal.abort() }))).code).toBe("cancelled");
    expect(unused.requests.length).toBe(0);
  });
});
