// The store through messages, as a window uses it: results, progress, cancelling, and errors that keep their code.

import { describe, expect, test } from "vitest";
import { StoreError } from "../../src/store/error.js";
import { serveStore } from "../../src/store/protocol.js";
import type { StorePort } from "../../src/store/protocol.js";
import { WindowModelStore } from "../../src/store/window-store.js";
import { FakeServer, digest, noise } from "./fake-server.js";
import { BLOCK, PART, URL_1, failure, makeStore } from "./tools.js";

const CONTENT = noise(6 * PART + 5);

function pair(server: FakeServer) {
  const { store, files } = makeStore(server);
  const channel = new MessageChannel();
  serveStore(channel.port1 as unknown as StorePort, async (folder) => {
    if (folder !== "models") throw new StoreError("storage.unavailable", `no folder ${folder}`);
    return store;
  });
  const close = () => {
    channel.port1.close();
    channel.port2.close();
  };
  const window = new WindowModelStore({ folder: "models", reading: store, connect: () => ({ port: channel.port2 as unknown as StorePort, close }) });
  return { window, files };
}

describe("a window's store", () => {
  test("downloads, lists, reads, verifies and deletes", async () => {
    const server = new FakeServer(CONTENT);
    const { window } = pair(server);
    const seen: number[] = [];
    const model = await window.download(new URL(URL_1), { headers: { Authorization: "x" }, onProgress: ({ loaded }) => seen.push(loaded) });
    expect(model.sha256).toBe(digest(CONTENT));
    expect(seen.at(-1)).toBe(CONTENT.length);
    expect(await window.list()).toEqual([model]);
    const source = await window.source(model.name);
    expect(await source.read(3, 4)).toEqual(CONTENT.slice(3, 7));
    source.close!();
    expect((await window.verify(model.name)).repaired).toEqual([]);
    expect((await window.download([URL_1])).length).toBe(1);
    expect((await window.export(model.name)).size).toBe(CONTENT.length);
    await window.delete(model.name);
    expect(await window.list()).toEqual([]);
    expect((await window.estimate()).free).toBeGreaterThan(0);
    window.close();
  });

  test("imports a file", async () => {
    const { window } = pair(new FakeServer(CONTENT));
    const model = await window.import(new Blob([CONTENT.slice()]), { name: "mine" });
    expect(model).toMatchObject({ name: "mine", sha256: digest(CONTENT) });
    window.close();
  });

  test("cancels work in the worker", async () => {
    const server = new FakeServer(CONTENT);
    const { window } = pair(server);
    const control = new AbortController();
    server.onChunk = (sent) => { if (sent >= 3000) { control.abort(); return new Promise(() => {}); } };
    expect((await failure(window.download(URL_1, { signal: control.signal }))).code).toBe("cancelled");
    expect((await failure(window.verify("x", { signal: AbortSignal.abort() }))).code).toBe("cancelled");
    window.close();
  });

  test("passes errors on with code and details", async () => {
    const server = new FakeServer(CONTENT);
    const { window, files } = pair(server);
    await window.download(URL_1);
    files.contents.get("model.gguf.file")![0]! ^= 1;
    const error = await failure(window.verify("model.gguf"));
    expect(error).toBeInstanceOf(StoreError);
    expect(error.code).toBe("storage.corrupt");
    expect(error.details.damaged).toEqual([{ offset: 0, length: BLOCK }]);
    expect((await failure(window.download(URL_1, { name: "other", sha256: "x" }))).code).toBe("option.wrong_type");
    window.close();
  });

  test("closing ends what is under way", async () => {
    const server = new FakeServer(CONTENT);
    const begun = new Promise<void>((resolve) => { server.onChunk = () => { resolve(); return new Promise(() => {}); }; });
    const { window } = pair(server);
    const download = failure(window.download(URL_1));
    await begun;
    window.close();
    expect((await download).code).toBe("cancelled");
  });
});
