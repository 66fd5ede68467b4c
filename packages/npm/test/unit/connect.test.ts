// The messages of a worker that fails.

import { expect, test } from "vitest";

import { workerError } from "../../src/connect.js";

test("a worker whose script cannot be loaded names the Vite setting and the option for other origins", () => {
  for (const error of [workerError(undefined, false), workerError("", false), workerError("SecurityError", false)]) {
    expect(error.code).toBe("worker.failed");
    expect(error.message).toContain("worker script could not be loaded");
    expect(error.message).toContain('`optimizeDeps: { exclude: ["rullama"] }`');
    expect(error.message).toContain('`worker: "blob"`');
  }
  expect(workerError("SecurityError", false).message).toContain("SecurityError");
});

test("a worker that fails later gives its own reason", () => {
  const error = workerError("out of memory", true);
  expect([error.code, error.message]).toEqual(["worker.failed", "The engine's worker failed: out of memory."]);
});
