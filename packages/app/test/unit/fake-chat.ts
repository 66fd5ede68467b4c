// A chat without a browser: storage in memory, and an engine whose replies the test writes.

import type { ChatOptions, Engine, Message } from "rullama";
import { beforeEach, vi } from "vitest";
import { ChatController } from "../../src/chat/controller";
import { Drafts } from "../../src/chat/drafts";
import { Library } from "../../src/chat/library";
import { path } from "../../src/chat/tree";
import type { ModelHost } from "../../src/model/host";
import type { Preferences } from "../../src/state/preferences";
import { DEFAULTS } from "../../src/state/settings";

const storage = new Map<string, string>();
const tabStorage = new Map<string, string>();

beforeEach(() => {
  storage.clear();
  tabStorage.clear();
  vi.stubGlobal("sessionStorage", {
    getItem: (key: string) => tabStorage.get(key) ?? null,
    setItem: (key: string, value: string) => void tabStorage.set(key, value),
    removeItem: (key: string) => void tabStorage.delete(key),
  });
  vi.stubGlobal("localStorage", {
    getItem: (key: string) => storage.get(key) ?? null,
    setItem: (key: string, value: string) => void storage.set(key, value),
  });
  vi.stubGlobal("document", { addEventListener: () => {}, getElementById: () => null, visibilityState: "visible" });
});

/** One reply of a fake engine. */
export interface FakeReply {
  request: Message[] | string;
  options: ChatOptions & { signal: AbortSignal };
  /** Writes a token. */
  write: (text: string, id?: number) => void;
  end: (finishReason?: "stop" | "length") => void;
  fail: (code: string) => void;
}

/** An engine whose replies the test writes. Tokens are words. */
export function fakeEngine(): { engine: Engine; replies: FakeReply[] } {
  const replies: FakeReply[] = [];
  const reply = (request: FakeReply["request"], options: FakeReply["options"]) => {
    const deltas: object[] = [];
    let ended: { finishReason: string } | { error: Error } | undefined;
    let wake = () => {};
    const stop = (code: string) => {
      ended ??= { error: Object.assign(new Error(code), { code }) };
      wake();
    };
    options.signal.addEventListener("abort", () => stop("cancelled"));
    replies.push({
      request,
      options,
      write: (text, id = 1) => (deltas.push({ text, ids: [id] }), wake()),
      end: (finishReason = "stop") => ((ended ??= { finishReason }), wake()),
      fail: stop,
    });
    const result = async () => {
      for await (const _ of stream()) {
        // To its end.
      }
      const text = deltas.map((delta) => (delta as { text: string }).text).join("");
      return { text, ...ended, usage: { promptTokens: 1, reusedTokens: 0, generatedTokens: deltas.length }, timings: { promptMs: 1, generateMs: 10 } };
    };
    async function* stream() {
      for (let at = 0; ; ) {
        if (at < deltas.length) {
          yield deltas[at++];
        } else if (!ended) {
          await new Promise<void>((resolve) => (wake = resolve));
        } else if ("error" in ended) {
          throw ended.error;
        } else {
          return;
        }
      }
    }
    return { [Symbol.asyncIterator]: stream, result };
  };
  const words = (text: string) => text.split(/\s+/).filter(Boolean);
  const engine = {
    info: { name: "engine", context: 100 },
    chat: (messages: Message[], options: FakeReply["options"]) => reply(messages, options),
    generate: (ids: { text: string }, options: FakeReply["options"]) => reply(ids.text, options),
    render: async (messages: Message[]) => messages.map(({ role, content }) => `${role}: ${content}`).join("\n"),
    // Also the text, so that tests can read it.
    tokenize: async (text: string) => Object.assign(text === "<channel|>" ? [99] : words(text).map(() => 1), { text }),
  };
  return { engine: engine as unknown as Engine, replies };
}

export const settle = () => new Promise((resolve) => setTimeout(resolve));

export async function makeChat() {
  const { engine, replies } = fakeEngine();
  const host = { ready: async () => engine, state: { kind: "ready", label: "a model" }, noteReply: () => {} } as unknown as ModelHost;
  const preferences = { settings: { ...DEFAULTS } } as unknown as Preferences;
  const library = await Library.open();
  const chat = new ChatController(library, host, preferences, new Drafts());
  const send = async (text: string) => {
    void chat.send(text);
    await settle();
  };
  const shown = () => path(chat.conversation).map(({ content, state }) => [content, state]);
  return { chat, library, host, engine, replies, send, shown };
}

