import { expect, test } from "vitest";

import { RullamaError } from "../../src/errors.js";
import { Reply } from "../../src/reply.js";
import type { Delta, ReplyResult } from "../../src/types.js";

const delta = (text: string): Delta => ({ text, ids: [] });
const RESULT = { text: "abc" } as ReplyResult;

/** A reply that the test writes. */
function written(signal?: AbortSignal) {
  let tell!: (delta: Delta) => void;
  let end!: (result: ReplyResult) => void;
  let fail!: (error: Error) => void;
  let inner!: AbortSignal;
  const reply = new Reply((onDelta, innerSignal) => {
    tell = onDelta;
    inner = innerSignal;
    return new Promise((resolve, reject) => {
      [end, fail] = [resolve, reject];
      const abort = () => reject(RullamaError.cancelled(innerSignal.reason));
      innerSignal.addEventListener("abort", abort);
      if (innerSignal.aborted) abort();
    });
  }, signal);
  return { reply, tell, end, fail, inner };
}

test("deltas come in order, before and after they are waited for", async () => {
  const { reply, tell, end } = written();
  tell(delta("a"));
  const texts: string[] = [];
  const reading = (async () => {
    for await (const { text } of reply) texts.push(text);
  })();
  await Promise.resolve();
  tell(delta("b"));
  tell(delta("c"));
  end(RESULT);
  await reading;
  expect(texts).toEqual(["a", "b", "c"]);
  expect(await reply.result()).toBe(RESULT);
});

test("leaving the loop ends the reply", async () => {
  const { reply, tell, inner } = written();
  tell(delta("a"));
  tell(delta("b"));
  for await (const _ of reply) break;
  expect(inner.aborted).toBe(true);
  expect(await reply.next()).toEqual({ done: true, value: undefined });
  await expect(reply.result()).rejects.toMatchObject({ code: "cancelled", name: "AbortError" });
});

test("a signal ends the reply, and the loop is told", async () => {
  const controller = new AbortController();
  const { reply, tell } = written(controller.signal);
  tell(delta("a"));
  const texts: string[] = [];
  await expect(
    (async () => {
      for await (const { text } of reply) {
        texts.push(text);
        controller.abort();
      }
    })(),
  ).rejects.toMatchObject({ code: "cancelled" });
  expect(texts).toEqual(["a"]);
  const late = written(AbortSignal.abort()).reply;
  await expect(late.result()).rejects.toMatchObject({ code: "cancelled" });
});

test("what was said before a failure is told before it", async () => {
  const { reply, tell, fail } = written();
  tell(delta("a"));
  fail(new RullamaError("device.lost", "gone"));
  expect(await reply.next()).toEqual({ done: false, value: delta("a") });
  await expect(reply.next()).rejects.toMatchObject({ code: "device.lost" });
});
