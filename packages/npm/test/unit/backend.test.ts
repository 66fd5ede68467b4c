// Which backend `auto` chooses, and which errors of a GPU make the CPU take over.

import { afterEach, expect, test, vi } from "vitest";

import { chooseBackend, isEmulated, reasonToLeave, type Adapter } from "../../src/backend.js";
import { RullamaError } from "../../src/errors.js";

afterEach(() => vi.unstubAllGlobals());

function browserWith(adapter: Adapter | null | Error): void {
  const requestAdapter = async () => {
    if (adapter instanceof Error) {
      throw adapter;
    }
    return adapter;
  };
  vi.stubGlobal("navigator", { gpu: { requestAdapter } });
}

test("without WebGPU, without an adapter, or where asking fails, the CPU computes", async () => {
  vi.stubGlobal("navigator", {});
  expect(await chooseBackend()).toMatchObject({ kind: "cpu", reason: expect.stringContaining("WebGPU is not available") });
  for (const adapter of [null, new Error("no")]) {
    browserWith(adapter);
    expect(await chooseBackend("auto")).toEqual({ kind: "cpu", reason: "The browser found no GPU." });
  }
});

test("a GPU is taken, an emulated one is not", async () => {
  browserWith({ info: { vendor: "apple", architecture: "metal-3", isFallbackAdapter: false } });
  expect(await chooseBackend()).toMatchObject({ kind: "gpu" });
  browserWith({ info: { isFallbackAdapter: true } });
  expect(await chooseBackend()).toMatchObject({ kind: "cpu", reason: expect.stringContaining("emulates") });
});

test.each([
  [{ isFallbackAdapter: true }, true],
  [{ info: { isFallbackAdapter: true } }, true],
  [{ info: { vendor: "google", architecture: "swiftshader" } }, true],
  [{ info: { description: "llvmpipe (LLVM 19.1.7, 256 bits)" } }, true],
  [{ info: { vendor: "mesa", device: "lavapipe" } }, true],
  [{ info: { description: "Microsoft Basic Render Driver" } }, true],
  [{ info: { vendor: "nvidia", architecture: "hopper", description: "NVIDIA H200" } }, false],
  [{ info: {} }, false],
  [{}, false],
] satisfies [Adapter, boolean][])("%j is emulated: %s", (adapter, emulated) => {
  expect(isEmulated(adapter)).toBe(emulated);
});

test("whoever asks for a backend gets it", async () => {
  vi.stubGlobal("navigator", {});
  expect(await chooseBackend("gpu")).toMatchObject({ kind: "gpu" });
  browserWith({});
  expect(await chooseBackend("cpu")).toMatchObject({ kind: "cpu" });
});

test.each([
  ["device.unavailable", true],
  ["device.unreliable", true],
  ["device.lost", true],
  ["memory.too_large", false],
  ["memory.exhausted", false],
  ["model.not_finite", false],
  ["cancelled", false],
  ["internal", false],
])("after %s the CPU takes over: %s", (code, leaves) => {
  expect(reasonToLeave(new RullamaError(code, "why")) !== undefined).toBe(leaves);
});
