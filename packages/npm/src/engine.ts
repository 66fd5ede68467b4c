// The public interface of a loaded model.

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
  yesOrNo,
  type Expected,
} from "./check.js";
import { Completions } from "./completions.js";
import { connect } from "./connect.js";
import { RullamaError } from "./errors.js";
import { INSPECT_OPTIONS, isTight, loadRequest } from "./load-request.js";
import { Attachments, withSources } from "./media/attachments.js";
import { takeMediaOptions } from "./media/options.js";
import { messageJson, messagesJson, optionsJson, readMessages, shown } from "./names.js";
import type { ChatEvent, LoadParams, ReplyEvent } from "./protocol.js";
import { Reply } from "./reply.js";
import { describeStore } from "./source/open.js";
import { askToPersist } from "./store/persist.js";
import type {
  ChatOptions,
  EngineInfo,
  GenerateOptions,
  KernelUse,
  LoadOptions,
  MediaInfo,
  Message,
  ModelSource,
} from "./types.js";
import { watchHidden } from "./visibility.js";

/** The session that {@link Engine.chat} and {@link Engine.generate} share. */
const SHARED_SESSION = 0;

const LOAD_OPTIONS = {
  ...INSPECT_OPTIONS,
  whenHidden: oneOf("continue", "pause"),
  onProgress: callable,
  onBackend: callable,
  store: either(yesOrNo, anyObject),
  selfTest: yesOrNo,
} satisfies Record<keyof LoadOptions, Expected>;

/** Answers a conversation; `chat.completions.create` does the same with OpenAI's request and response types. */
export interface Chat {
  (messages: readonly Message[], options?: ChatOptions): Reply;
  readonly completions: Completions;
}

/** A loaded model. */
export class Engine {
  #info: EngineInfo;

  /**
   * Answers a conversation. The messages that it shares with the previous conversation are not computed again. The engine writes one
   * answer at a time; later calls wait for their turn.
   */
  readonly chat: Chat;

  readonly #caller: Caller;
  #sessions = SHARED_SESSION + 1;
  #unloaded: Promise<void> | undefined;

  readonly #unwatch: () => void;

  private constructor(caller: Caller, info: EngineInfo, pauses: boolean, onBackend?: LoadOptions["onBackend"]) {
    this.#caller = caller;
    this.#info = info;
    caller.onMoved = (info) => {
      this.#info = info;
      onBackend?.(info.backend);
    };
    // If the engine fails, the pending replies report it, so this call does not need to.
    const pause = (paused: boolean) => void caller.call("pause", { paused }).catch(() => {});
    this.#unwatch = pauses ? watchHidden(pause) : () => {};
    const chat = (messages: readonly Message[], options: ChatOptions = {}) =>
      chatReply(caller, SHARED_SESSION, info.media, messages, options);
    this.chat = Object.assign(chat, { completions: new Completions(chat, info.name) });
  }

  /**
   * Loads a model. Rejects with a {@link RullamaError}; {@link inspect} finds most errors without reading the weights. With the option
   * `store`, a model that is not stored yet is inspected before it is downloaded.
   */
  static async load(source: ModelSource, given: LoadOptions = {}): Promise<Engine> {
    const options = checkedOptions(given, LOAD_OPTIONS);
    const { worker = true, signal, onProgress, store } = options;
    if (signal?.aborted) {
      throw RullamaError.cancelled(signal.reason);
    }
    const tight = await isTight(options);
    const { whenHidden = tight ? "pause" : "continue" } = options;
    const caller = connect(worker);
    try {
      const params: LoadParams = loadRequest(source, options, tight, caller);
      const kept = describeStore(store, params.sources);
      if (kept) {
        askToPersist();
        params.store = kept;
      }
      const info = await caller.call("load", params, { signal, onEvent: (event) => onProgress?.(event) });
      return new Engine(caller, info, whenHidden === "pause", options.onBackend);
    } catch (thrown) {
      const error = RullamaError.from(thrown);
      caller.break(error);
      throw error;
    }
  }

  /** The model, what computes it and the memory that it takes. Another object once another backend has taken over. */
  get info(): EngineInfo {
    return this.#info;
  }

  /** Continues a text, or token ids, without a chat template. */
  generate(prompt: string | readonly number[] | Uint32Array, options: GenerateOptions = {}): Reply {
    return generateReply(this.#caller, SHARED_SESSION, prompt, options);
  }

  /** A separate conversation with its own key-value cache on the GPU. */
  session(): Session {
    return new Session(this.#caller, this.#sessions++, this.#info.media);
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

  /** The prompt text of a conversation. Images and sounds appear as tags: `[img-0]`. */
  async render(messages: readonly Message[], options: ChatOptions = {}): Promise<string> {
    const { rest } = takeMediaOptions(optionsObject(options));
    const params = { messages: messagesJson(messages, shown), options: optionsJson(rest) };
    return this.#caller.call("render", params);
  }

  /** The kernels that the model runs, and how often. */
  kernels(): Promise<KernelUse[]> {
    return this.#caller.call("kernels", {});
  }

  /** Cancels all replies and frees the memory. */
  unload(): Promise<void> {
    const caller = this.#caller;
    this.#unwatch();
    this.#unloaded ??= caller
      .call("unload", {})
      // A worker that no longer answers is terminated below as well.
      .catch(() => {})
      .then(() => caller.break(new RullamaError("engine.unloaded", "The model was unloaded.")));
    return this.#unloaded;
  }
}

/** One conversation. */
export class Session {
  readonly #caller: Caller;
  readonly #id: number;
  readonly #takes: MediaInfo;
  /** The images and sounds of the messages of {@link send}. */
  #media: number[] = [];

  /** @internal */
  constructor(caller: Caller, id: number, takes: MediaInfo) {
    this.#caller = caller;
    this.#id = id;
    this.#takes = takes;
  }

  /** Adds a message (a text is a message of the user) and answers it. The answer becomes part of the conversation. */
  send(message: string | Message, options: ChatOptions = {}): Reply {
    const given = optionsObject(options);
    return new Reply(async (onEvent, signal) => {
      const { imageBudget, onEncode, rest } = takeMediaOptions(given);
      const attached = new Attachments(this.#caller, this.#takes, imageBudget);
      try {
        const messageText = messageJson(message, attached.take);
        const params = { session: this.#id, message: messageText, options: optionsJson(rest), ...attached.params };
        return await this.#caller.call("send", params, { signal, onEvent: listener(onEvent, onEncode) });
      } finally {
        // They may be needed again with a later message.
        this.#media.push(...attached.numbers);
      }
    }, given.signal);
  }

  /** Answers a whole conversation, which replaces this session's. */
  chat(messages: readonly Message[], options: ChatOptions = {}): Reply {
    return chatReply(this.#caller, this.#id, this.#takes, messages, options);
  }

  /** Continues a text, or token ids, without a chat template. */
  generate(prompt: string | readonly number[] | Uint32Array, options: GenerateOptions = {}): Reply {
    return generateReply(this.#caller, this.#id, prompt, options);
  }

  /** The messages of {@link send}, and the answers to them. */
  async messages(): Promise<Message[]> {
    return withSources(readMessages(await this.#caller.call("messages", { session: this.#id })), this.#caller);
  }

  /** Removes all messages. */
  async clear(): Promise<void> {
    const media = this.#media;
    await this.#caller.call("clear", { session: this.#id });
    this.#caller.dropMedia(media);
    this.#media = this.#media.filter((number) => !media.includes(number));
  }

  /** Cancels the current reply, if there is one, and frees the session's memory. */
  async close(): Promise<void> {
    await this.#caller.call("close", { session: this.#id });
    this.#caller.dropMedia(this.#media);
  }
}

function chatReply(caller: Caller, session: number, takes: MediaInfo, messages: readonly Message[], options: ChatOptions): Reply {
  const given = optionsObject(options);
  return new Reply(async (onEvent, signal) => {
    const { imageBudget, onEncode, rest } = takeMediaOptions(given);
    const attached = new Attachments(caller, takes, imageBudget);
    try {
      const params = { session, messages: messagesJson(messages, attached.take), options: optionsJson(rest), ...attached.params };
      return await caller.call("chat", params, { signal, onEvent: listener(onEvent, onEncode) });
    } finally {
      attached.drop();
    }
  }, given.signal);
}

/** Tells the events of encoding to `onEncode`, and the others to the reply. */
function listener(onEvent: (event: ReplyEvent) => void, onEncode: ChatOptions["onEncode"]): (event: ChatEvent) => void {
  return (event) => ("encoding" in event ? onEncode?.(event.encoding) : onEvent(event));
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
