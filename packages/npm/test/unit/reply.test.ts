import { expect, test } from "vitest";

import { RullamaError } from "../../src/errors.js";
import type { ReplyEvent } from "../../src/protocol.js";
import { Reply } from "../../src/reply.js";
import type { Delta, ReplyResult } from "../../src/types.js";

const delta = (text: string): Delta => ({ text, ids: [] });
const RESULT = { text: "abc" } as ReplyResult;

/** A reply that the test writes. */
function written(signal?: AbortSignal) {
  let tell!: (event: ReplyEvent) => void;
  let end!: (result: ReplyResult) => void;
  let fail!: (error: Error) => void;
  let inner!: AbortSignal;
  const reply = new Reply((onEvent, innerSignal) => {
    tell = onEvent;
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

const STARTED = { seed: 7, promptTokens: 12, reusedTokens: 4, promptMs: 30 };

test("after the loop was left, the result is what was written until then", async () => {
  const { reply, tell, inner } = written();
  tell({ started: STARTED });
  tell({ text: "", thought: "Hm", ids: [1] });
  tell({ text: "Hi", ids: [2, 3], logprobs: [] });
  tell({ text: "", toolCalls: [{ function: { name: "f", arguments: {} } }], ids: [4] });
  for await (const _ of reply) break;
  expect(inner.aborted).toBe(true);
  expect(await reply.next()).toEqual({ done: true, value: undefined });
  expect(await reply.result()).toMatchObject({
    text: "Hi",
    thought: "Hm",
    toolCalls: [{ function: { name: "f" } }],
    ids: [1, 2, 3, 4],
    logprobs: [],
    finishReason: "cancelled",
    seed: 7,
    usage: { promptTokens: 12, reusedTokens: 4, generatedTokens: 4 },
    timings: { promptMs: 30 },
  });
});

test("a reply that is cancelled before it begins has an empty result", async () => {
  const { reply } = written();
  reply.cancel();
  expect(await reply.result()).toMatchObject({ text: "", ids: [], finishReason: "cancelled", seed: -1, usage: { generatedTokens: 0 } });
});

test("cancelling changes neither a complete reply nor one that failed", async () => {
  const complete = written();
  complete.end(RESULT);
  await complete.reply.result();
  complete.reply.cancel();
  expect(await complete.reply.result()).toBe(RESULT);
  const failed = written();
  failed.fail(new RullamaError("device.lost", "gone"));
  await expect(failed.reply.result()).rejects.toMatchObject({ code: "device.lost" });
  failed.reply.cancel();
  await expect(failed.reply.result()).rejects.toMatchObject({ code: "device.lost" });
});

test("a signal that is aborted before the loop is left still rejects the result", async () => {
  const controller = new AbortController();
  const { reply, tell } = written(controller.signal);
  tell(delta("a"));
  for await (const _ of reply) {
    controller.abort();
    break;
  }
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
