// The engine as programs see it.

import type { Caller } from "./caller.js";
import {
  anyObject,
  callable,
  checkedIds,
  checkedOptions,
  checkedText,
  either,
  oneOf,
  optionsObject,
  runningPlace,
  wasmLocation,
  within,
  yesOrNo,
  type Expected,
} from "./check.js";
import { Completions } from "./completions.js";
import { connect } from "./connect.js";
import { RullamaError } from "./errors.js";
import { messageJson, messagesJson, optionsJson, readMessages } from "./names.js";
import type { LoadParams } from "./protocol.js";
import { RANGES } from "./ranges.js";
import { Reply } from "./reply.js";
import { askToPersist } from "./store/persist.js";
import { describe, describeStore, sentWasm } from "./source/open.js";
import { deviceHints, hasLittleMemory, memoryOptions } from "./tight.js";
import type {
  ChatOptions,
  EngineInfo,
  GenerateOptions,
  KernelUse,
  LoadOptions,
  Message,
  ModelSource,
} from "./types.js";
import { watchHidden } from "./visibility.js";

/** The conversation that {@link Engine.chat} and {@link Engine.generate} share. */
const SHARED_SESSION = 0;

const LOAD_OPTIONS = {
  context: within(RANGES.context),
  kv: oneOf("f32", "f16", "q8"),
  memory: within(RANGES.memory),
  residency: oneOf("gpu", "rows", "paged"),
  tight: yesOrNo,
  whenHidden: oneOf("continue", "pause"),
  onProgress: callable,
  signal: anyObject,
  worker: runningPlace,
  wasm: wasmLocation,
  headers: anyObject,
  store: either(yesOrNo, anyObject),
  floor: yesOrNo,
  subgroups: yesOrNo,
  selfTest: yesOrNo,
} satisfies Record<keyof LoadOptions, Expected>;

/** Answers conversations; `chat.completions.create` does so in OpenAI's shape. */
export interface Chat {
  (messages: readonly Message[], options?: ChatOptions): Reply;
  readonly completions: Completions;
}

/** A loaded model. */
export class Engine {
  /** What the model is, and where it runs. */
  readonly info: EngineInfo;

  /**
   * Answers a conversation. Of what it has in common with the last one, nothing is computed again. One answer is written
   * at a time; others wait.
   */
  readonly chat: Chat;

  readonly #caller: Caller;
  #sessions = SHARED_SESSION + 1;
  #unloaded: Promise<void> | undefined;

  readonly #unwatch: () => void;

  private constructor(caller: Caller, info: EngineInfo, pauses: boolean) {
    this.#caller = caller;
    this.info = info;
    // Whoever waits for a reply is told what breaks the engine; nobody waits for this.
    const pause = (paused: boolean) => void caller.call("pause", { paused }).catch(() => {});
    this.#unwatch = pauses ? watchHidden(pause) : () => {};
    const chat = (messages: readonly Message[], options: ChatOptions = {}) =>
      chatReply(caller, SHARED_SESSION, messages, options);
    this.chat = Object.assign(chat, { completions: new Completions(chat, info.name) });
  }

  /** Loads a model. */
  static async load(source: ModelSource, given: LoadOptions = {}): Promise<Engine> {
    const options = checkedOptions(given, LOAD_OPTIONS);
    const { worker = true, signal, onProgress, wasm, headers, store, kv, memory, floor, subgroups, selfTest } = options;
    if (signal?.aborted) {
      throw RullamaError.cancelled(signal.reason);
    }
    const { tight = hasLittleMemory(await deviceHints()), whenHidden = tight ? "pause" : "continue" } = options;
    const caller = connect(worker);
    try {
      const params: LoadParams = {
        sources: describe(source, (reader) => caller.addReader(reader)),
        options: JSON.stringify({ ...memoryOptions(options, tight), kv, memory, floor, subgroups, self_test: selfTest }),
      };
      if (headers) {
        params.headers = headers;
      }
      const kept = describeStore(store, params.sources);
      if (kept) {
        askToPersist();
        params.store = kept;
      }
      if (wasm) {
        params.wasm = sentWasm(wasm);
      }
      const info = await caller.call("load", params, { signal, onEvent: (event) => onProgress?.(event) });
      return new Engine(caller, info, whenHidden === "pause");
    } catch (thrown) {
      const error = RullamaError.from(thrown);
      caller.break(error);
      throw error;
    }
  }

  /** Continues a text, or tokens, as they are: no conversation, no marks. */
  generate(prompt: string | readonly number[] | Uint32Array, options: GenerateOptions = {}): Reply {
    return generateReply(this.#caller, SHARED_SESSION, prompt, options);
  }

  /** A conversation of its own, with a memory of its own on the GPU. */
  session(): Session {
    return new Session(this.#caller, this.#sessions++);
  }

  /** The tokens of a text. */
  async tokenize(text: string, options: { bos?: boolean; special?: boolean } = {}): Promise<Uint32Array> {
    const { bos = false, special = true } = checkedOptions(options, { bos: yesOrNo, special: yesOrNo });
    return this.#caller.call("tokenize", { text: checkedText(text), bos, special });
  }

  /** The text of tokens. */
  async detokenize(ids: readonly number[] | Uint32Array, options: { special?: boolean } = {}): Promise<string> {
    const { special = true } = checkedOptions(options, { special: yesOrNo });
    return this.#caller.call("detokenize", { ids: checkedIds(ids), special });
  }

  /** The prompt that a conversation becomes. */
  async render(messages: readonly Message[], options: ChatOptions = {}): Promise<string> {
    const params = { messages: messagesJson(messages), options: optionsJson(optionsObject(options)) };
    return this.#caller.call("render", params);
  }

  /** The kernels that steps use, and how often. */
  kernels(): Promise<KernelUse[]> {
    return this.#caller.call("kernels", {});
  }

  /** Ends everything and gives the memory back. */
  unload(): Promise<void> {
    const caller = this.#caller;
    this.#unwatch();
    this.#unloaded ??= caller
      .call("unload", {})
      // A worker that does not answer any more is ended all the same.
      .catch(() => {})
      .then(() => caller.break(new RullamaError("engine.unloaded", "the model was unloaded")));
    return this.#unloaded;
  }
}

/** One conversation. */
export class Session {
  readonly #caller: Caller;
  readonly #id: number;

  /** @internal */
  constructor(caller: Caller, id: number) {
    this.#caller = caller;
    this.#id = id;
  }

  /** Adds a message, or what the user says, and answers it. The answer becomes part of the conversation. */
  send(message: string | Message, options: ChatOptions = {}): Reply {
    const given = optionsObject(options);
    return new Reply(async (onEvent, signal) => {
      const params = { session: this.#id, message: messageJson(message), options: optionsJson(given) };
      return this.#caller.call("send", params, { signal, onEvent });
    }, given.signal);
  }

  /** Answers a whole conversation, whatever this one was before. */
  chat(messages: readonly Message[], options: ChatOptions = {}): Reply {
    return chatReply(this.#caller, this.#id, messages, options);
  }

  /** Continues a text, or tokens, as they are. */
  generate(prompt: string | readonly number[] | Uint32Array, options: GenerateOptions = {}): Reply {
    return generateReply(this.#caller, this.#id, prompt, options);
  }

  /** The messages of {@link send}, and the answers to them. */
  async messages(): Promise<Message[]> {
    return readMessages(await this.#caller.call("messages", { session: this.#id }));
  }

  /** Forgets everything. */
  clear(): Promise<void> {
    return this.#caller.call("clear", { session: this.#id });
  }

  /** Ends the reply that is being written, if there is one, and gives the memory back. */
  close(): Promise<void> {
    return this.#caller.call("close", { session: this.#id });
  }
}

function chatReply(caller: Caller, session: number, messages: readonly Message[], options: ChatOptions): Reply {
  const given = optionsObject(options);
  return new Reply(async (onEvent, signal) => {
    const params = { session, messages: messagesJson(messages), options: optionsJson(given) };
    return caller.call("chat", params, { signal, onEvent });
  }, given.signal);
}

function generateReply(
  caller: Caller,
  session: number,
  prompt: string | readonly number[] | Uint32Array,
  options: GenerateOptions,
): Reply {
  const given = optionsObject(options);
  return new Reply(async (onEvent, signal) => {
    const text = typeof prompt === "string" ? prompt : checkedIds(prompt);
    return caller.call("generate", { session, prompt: text, options: optionsJson(given) }, { signal, onEvent });
  }, given.signal);
}
