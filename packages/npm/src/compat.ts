// The API of the earlier rullama, implemented with this engine.
//
// In the earlier API a model runs on the thread that loads it, and some methods are synchronous. So this class uses the wasm module
// directly; programs put it into a worker of their own, as before. New programs use `Engine`.

import { optionsObject } from "./check.js";
import { RullamaError } from "./errors.js";
import { checkOptionNames, messagesJson, optionsJson, shown } from "./names.js";
import { chooseBackend } from "./backend.js";
import { onBroken, runtime, type Runtime } from "./runtime.js";
import { checkNumber, RANGES } from "./ranges.js";
import { absolute } from "./source/addresses.js";
import { httpSource } from "./source/http.js";
import { bytesSource } from "./source/memory.js";
import type { ByteSource } from "./source/types.js";
import { memoryOptions } from "./tight.js";
import type { EngineInfo, GenerateOptions, Message, ReplyResult } from "./types.js";
import type { WebEngine, WebSession } from "./wasm/rullama.js";

/** Reads a range of a model's file. */
export type ReadFunction = (offset: number, length: number) => Uint8Array | Promise<Uint8Array>;

/** Sampling options, by the names of the earlier API or of this one. An unknown option is an error. */
export type Sampling = GenerateOptions & { repetition_penalty?: number; [name: string]: unknown };

/** The default context of {@link Model.loadFromOpfsTextOnly}, for phones. */
const SMALL_CONTEXT = 512;

/** A model with the API of the earlier rullama. New programs use {@link Engine}. */
export class Model {
  readonly #wasm: Runtime;
  readonly #engine: WebEngine;
  readonly #session: WebSession;
  readonly #source: ByteSource;
  readonly #info: EngineInfo;
  /** The tokens that the model has read. */
  #tokens: number[] = [];
  #sampling: Sampling = { temperature: 0 };

  private constructor(wasm: Runtime, engine: WebEngine, source: ByteSource) {
    this.#wasm = wasm;
    this.#engine = engine;
    this.#session = engine.session();
    this.#source = source;
    this.#info = JSON.parse(engine.info()) as EngineInfo;
  }

  /** Loads a model that is in memory. */
  static load(bytes: Uint8Array): Promise<Model> {
    return Model.#load(bytesSource(bytes));
  }

  /** Loads a model from a server that answers Range requests. */
  static async loadFromUrl(url: string): Promise<Model> {
    return Model.#load(await httpSource(absolute(url)));
  }

  /** Loads a model of `total` bytes whose ranges `read` gives. */
  static async loadFromOpfs(read: ReadFunction, total: number, maxContext?: number): Promise<Model> {
    const context = checkedContext(maxContext);
    return Model.#load(readerSource(read, total), context === undefined ? {} : { context });
  }

  /** The same for phones: embedding tables stay in the file, and the context is small. */
  static async loadFromOpfsTextOnly(read: ReadFunction, total: number, maxContext?: number): Promise<Model> {
    return Model.#load(readerSource(read, total), memoryOptions({ context: checkedContext(maxContext) ?? SMALL_CONTEXT }, true));
  }

  static async #load(source: ByteSource, options: { context?: number } = {}): Promise<Model> {
    try {
      const { kind } = await chooseBackend();
      const wasm = await runtime(kind, { threads: 1 });
      const cancel = new wasm.Cancel();
      const load = wasm.WebEngine.load([source], undefined, JSON.stringify(options), () => {}, cancel);
      const engine = await unlessBroken(load).finally(() => cancel.free());
      return new Model(wasm, engine, source);
    } catch (thrown) {
      source.close?.();
      throw RullamaError.from(thrown);
    }
  }

  get vocabSize(): number {
    return this.#info.vocabulary;
  }

  get maxContext(): number {
    return this.#info.context;
  }

  /** The tokens of a text. Special tokens in the text are recognised; no `<bos>` is added. */
  encode(text: string): Uint32Array {
    return this.#engine.tokenize(text, false, true);
  }

  /** The text of a token. */
  tokenStr(id: number): string {
    return this.#engine.detokenize(Uint32Array.of(id), true);
  }

  /** Whether a token ends a reply. */
  isEos(id: number): boolean {
    return this.#engine.isEnd(id);
  }

  /** Reads a token and samples the next one. */
  async step(id: number): Promise<number> {
    const { repetition_penalty: penalty, ...options } = this.#sampling;
    const tokens = this.#tokens;
    tokens.push(id);
    const given: GenerateOptions = { ...options, maxTokens: 1, ignoreEos: true };
    if (penalty !== undefined) {
      checkNumber("repetition_penalty", RANGES.repeat_penalty, penalty);
      given.repeatPenalty = penalty;
    }
    // A seed of −1 means a random one.
    if (typeof given.seed === "number" && given.seed !== -1) {
      // Each step starts its random numbers anew; with the same seed, all steps would draw the same number.
      given.seed += tokens.length;
    }
    const cancel = new this.#wasm.Cancel();
    try {
      const reply = this.#session.generate(Uint32Array.from(tokens), optionsJson(given), () => {}, cancel);
      const json = await unlessBroken(reply);
      const [next] = (JSON.parse(json) as ReplyResult).ids;
      if (next === undefined) {
        throw new RullamaError("context.overflow", `The context of ${this.maxContext} tokens is full.`);
      }
      return next;
    } catch (thrown) {
      // A step that fails has not read its token.
      tokens.pop();
      throw RullamaError.from(thrown);
    } finally {
      cancel.free();
    }
  }

  /** Starts again with an empty context. */
  reset(): void {
    this.#tokens = [];
    this.#session.clear();
  }

  /** Sets the sampling options. The default is a temperature of 0. */
  setSampling(options: Sampling): void {
    const { repetition_penalty: _, ...rest } = optionsObject(options);
    checkOptionNames(rest);
    this.#sampling = { ...options };
  }

  /** The prompt text of a conversation, with or without `<bos>`. */
  renderChat(messages: readonly Message[], withBos = true): string {
    const prompt = this.#engine.render(messagesJson(messages, shown), optionsJson({ think: false }));
    return withBos ? prompt : prompt.replace(/^<bos>/, "");
  }

  /** Frees the memory. */
  free(): void {
    this.#session.free();
    this.#engine.unload();
    this.#source.close?.();
  }
}

/** The context; undefined if it was left out or is 0, which the earlier API treated as its default. */
function checkedContext(maxContext: number | undefined): number | undefined {
  if (maxContext === undefined || maxContext === 0) {
    return undefined;
  }
  checkNumber("maxContext", RANGES.context, maxContext);
  return maxContext;
}

/** Waits for a promise of the wasm module; rejects if the module crashes, because the promise then never settles. */
function unlessBroken<T>(work: Promise<T>): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    const forget = onBroken(reject);
    work.then(resolve, reject).finally(forget);
  });
}

function readerSource(read: ReadFunction, length: number): ByteSource {
  return { name: "reader", length, read: async (offset, count) => read(offset, count) };
}
