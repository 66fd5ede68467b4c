import { afterEach, describe, expect, test, vi } from "vitest";
import { backendLine } from "../../src/device/backend-line";
import { verdict } from "../../src/device/verdict";
import { fileAddress } from "../../src/model/address";
import { probe } from "../../src/model/probe";

afterEach(() => vi.unstubAllGlobals());

test("the address of a page on Hugging Face becomes that of its file", () => {
  const blob = "https://huggingface.co/google/gemma-4-E2B-it-gguf/blob/main/blob/model.gguf";
  expect(fileAddress(` ${blob} `)).toBe("https://huggingface.co/google/gemma-4-E2B-it-gguf/resolve/main/blob/model.gguf");
  expect(fileAddress("https://hf.co/a/b/blob/main/m.gguf?download=true")).toBe("https://hf.co/a/b/resolve/main/m.gguf?download=true");
  for (const other of ["https://huggingface.co/a/b/resolve/main/blob/m.gguf", "https://example.org/a/b/blob/main/m.gguf", "not an address"]) {
    expect(fileAddress(other)).toBe(other);
  }
});

describe("the look at an address", () => {
  const look = async (fetch: (url: URL, options: RequestInit) => Promise<Response>, address = "https://models.example/m.gguf", online = true) => {
    vi.stubGlobal("location", new URL("https://app.example/"));
    vi.stubGlobal("navigator", { onLine: online });
    vi.stubGlobal("fetch", fetch);
    return probe(address, new AbortController().signal).then(
      () => "fine",
      ({ code, details }: { code: string; details: object }) => ({ code, details }),
    );
  };
  const unreachable = async () => {
    throw new TypeError("Failed to fetch");
  };

  test("accepts a GGUF file, whether the server sends a part or all of it", async () => {
    expect(await look(async () => new Response("GGUF", { status: 206 }))).toBe("fine");
    expect(await look(async () => new Response("GGUF and the rest"))).toBe("fine");
  });

  test("tells what is wrong", async () => {
    expect(await look(async () => new Response("no", { status: 404 }))).toEqual({ code: "source.status", details: { status: 404 } });
    expect(await look(async () => new Response("<!doctype html>"))).toEqual({ code: "gguf.not_gguf", details: { file: "m.gguf" } });
    expect(await look(async () => new Response(""))).toMatchObject({ code: "gguf.not_gguf" });
    expect(await look(unreachable)).toMatchObject({ code: "source.connection" });
    expect(await look(unreachable, undefined, false)).toMatchObject({ code: "source.offline" });
    expect(await look(unreachable, "ftp://models.example/m.gguf")).toMatchObject({ code: "source.address" });
    expect(await look(unreachable, "https://")).toMatchObject({ code: "source.address" });
  });

  test("tells a server that forbids reading from one that can't be reached", async () => {
    const forbidding = async (_: URL, { mode }: RequestInit) => (mode === "no-cors" ? new Response("") : unreachable());
    expect(await look(forbidding)).toMatchObject({ code: "source.cors" });
    // The page's own server needs no permission.
    expect(await look(forbidding, "https://app.example/m.gguf")).toMatchObject({ code: "source.connection" });
  });

  test("gives up on a server that does not answer", async () => {
    const timeout = vi.spyOn(AbortSignal, "timeout").mockImplementation(() => AbortSignal.abort());
    const silent = async (_: URL, { signal }: RequestInit) => {
      signal?.throwIfAborted();
      return new Promise<Response>(() => {});
    };
    expect(await look(silent)).toMatchObject({ code: "source.timeout", details: { file: "models.example", seconds: 8 } });
    expect(timeout).toHaveBeenCalledWith(8000);
    timeout.mockRestore();
  });
});

describe("the line on what computes", () => {
  test("names it, and why it is not the GPU", () => {
    const gpu = { kind: "gpu", reason: "The browser offers a GPU." } as const;
    const cpu = { kind: "cpu", reason: "The browser found no GPU." } as const;
    expect(backendLine(gpu, "auto", "apple metal-3")).toBe("The GPU computes: apple metal-3.");
    expect(backendLine(gpu, "gpu")).toBe("The GPU computes. You chose it in the settings.");
    expect(backendLine(cpu, "auto")).toBe("The CPU computes. The browser found no GPU.");
    expect(backendLine(cpu, "cpu")).toBe("The CPU computes. You chose it in the settings.");
  });
});

describe("the verdict on a device", () => {
  const adapter = { name: "", fallback: false, features: [], limits: { maxBufferSize: 2 ** 31 } };

  test("names the size of models that fit", () => {
    expect(verdict({ kind: "yes", adapter }, 8)).toMatchObject({ tone: "good", title: "Your GPU can run models up to about 4.0 GB" });
    expect(verdict({ kind: "yes", adapter }, 4).title).toContain("about 2.0 GB");
    expect(verdict({ kind: "yes", adapter: { ...adapter, limits: { maxBufferSize: 2 ** 28 } } }, undefined).title).toContain("about 500 MB");
  });

  test("says why the CPU computes", () => {
    expect(verdict({ kind: "no", lack: "missing" }, 8)).toMatchObject({ tone: "fair", title: "The CPU computes: this browser has no WebGPU" });
    expect(verdict({ kind: "no", lack: "insecure" }, 8).title).toContain("needs a secure address");
    expect(verdict({ kind: "yes", adapter: { ...adapter, fallback: true } }, 8)).toMatchObject({ tone: "fair", title: expect.stringContaining("only emulates one") });
  });
});
