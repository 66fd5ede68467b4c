import { expect, test, vi } from "vitest";

import { Caller } from "../../src/caller.js";
import { RullamaError } from "../../src/errors.js";
import { line, type Request } from "../../src/protocol.js";

/** A caller, and the other end of its line with what arrived there. */
function called() {
  const [here, there] = line();
  const requests: Request[] = [];
  there.listen((request) => requests.push(request));
  return { caller: new Caller(here), there, requests };
}

test("an answer goes to the call that it answers", async () => {
  const { caller, there, requests } = called();
  const first = caller.call("info", {});
  const second = caller.call("detokenize", { ids: Uint32Array.of(1), special: true });
  await vi.waitFor(() => expect(requests.length).toBe(2));
  there.post({ kind: "done", id: 2, result: "two" });
  there.post({ kind: "failed", id: 1, error: { code: "device.lost", message: "gone", details: { bytes: 1 } } });
  expect(await second).toBe("two");
  await expect(first).rejects.toMatchObject({ code: "device.lost", message: "gone", details: { bytes: 1 } });
  await expect(first).rejects.toBeInstanceOf(RullamaError);
});

test("a signal ends a call at once, and the other side is told", async () => {
  const { caller, there, requests } = called();
  const controller = new AbortController();
  const events: unknown[] = [];
  const params = { session: 0, messages: "[]", options: "{}" };
  const call = caller.call("chat", params, { signal: controller.signal, onEvent: (event) => events.push(event) });
  there.post({ kind: "event", id: 1, event: "early" });
  await vi.waitFor(() => expect(events).toEqual(["early"]));
  controller.abort("enough");
  there.post({ kind: "event", id: 1, event: "late" });
  await expect(call).rejects.toMatchObject({ code: "cancelled", cause: "enough" });
  await vi.waitFor(() => expect(requests.at(-1)).toEqual({ kind: "cancel", id: 1 }));
  expect(events).toEqual(["early"]);
  await expect(caller.call("info", {}, { signal: AbortSignal.abort() })).rejects.toMatchObject({ code: "cancelled" });
});

test("readers of the page answer the other side, and so do their failures", async () => {
  const { caller, there, requests } = called();
  const numbers = [
    caller.addReader({ length: 9, read: (offset, length) => Uint8Array.of(offset, length) }),
    caller.addReader({ length: 9, read: async () => Uint8Array.of(7).buffer }),
    caller.addReader({ length: 9, read: () => Promise.reject(new Error("no")) }),
  ];
  numbers.forEach((reader, id) => there.post({ kind: "read", id, reader, offset: 3, length: 4 }));
  await vi.waitFor(() => expect(requests.length).toBe(3));
  expect(requests).toEqual([
    { kind: "bytes", id: 0, bytes: Uint8Array.of(3, 4) },
    { kind: "bytes", id: 1, bytes: Uint8Array.of(7) },
    { kind: "bytes", id: 2, error: { code: "source.other", message: "no", details: {} } },
  ]);
});

test("when the other side is broken, everybody is told", async () => {
  const { caller, there } = called();
  const call = caller.call("info", {});
  there.post({ kind: "broken", error: { code: "internal", message: "a panic", details: {} } });
  await expect(call).rejects.toMatchObject({ code: "internal" });
  await expect(caller.call("info", {})).rejects.toMatchObject({ code: "internal", message: "a panic" });
});
