// The names of the system before this one, on top of the same engine.
//
// There a model lived on the thread that loaded it, and some of its methods answered at once. So this class uses the wasm
// module directly; put it into a worker of your own, as before. New programs use `Engine`.

import { RullamaError } from "./errors.js";
import { messagesJson, optionsJson } from "./names.js";
import { onBroken, runtime, type Runtime } from "./runtime.js";
import { checkNumber, RANGES } from "./ranges.js";
import { httpSource } from "./source/http.js";
import { bytesSource } from "./source/memory.js";
import type { ByteSource } from "./source/types.js";
import { memoryOptions } from "./tight.js";
import type { EngineInfo, GenerateOptions, Message, ReplyResult } from "./types.js";
import type { WebEngine, WebSession } from "./wasm/rullama.js";

/** Reads a range of a model's file. */
export type ReadFunction = (offset: number, length: number) => Uint8Array | Promise<Uint8Array>;

/** How tokens are chosen, in the names of that system or of this one. */
export type Sampling = GenerateOptions & { repetition_penalty?: number; [name: string]: unknown };

/** Tokens that a conversation may have, where that system held back for the sake of phones. */
const SMALL_CONTEXT = 512;

export class Model {
  readonly #wasm: Runtime;
  readonly #engine: WebEngine;
  readonly #session: WebSession;
  readonly #source: ByteSource;
  readonly #info: EngineInfo;
  /** What the model has read. */
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
    return Model.#load(await httpSource(url));
  }

  /** Loads a model that `read` reads, which has `total` bytes. */
  static async loadFromOpfs(read: ReadFunction, total: number, maxContext?: number): Promise<Model> {
    const context = checkedContext(maxContext);
    return Model.#load(readerSource(read, total), context === undefined ? {} : { context });
  }

  /** The same for phones: without towers for images and sound, with tables that stay in the file, and a small context. */
  static async loadFromOpfsTextOnly(read: ReadFunction, total: number, maxContext?: number): Promise<Model> {
    return Model.#load(readerSource(read, total), memoryOptions({ context: checkedContext(maxContext) ?? SMALL_CONTEXT }, true));
  }

  static async #load(source: ByteSource, options: { context?: number } = {}): Promise<Model> {
    try {
      const wasm = await runtime();
      const cancel = new wasm.Cancel();
      const load = wasm.WebEngine.load([source], JSON.stringify(options), () => {}, cancel);
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

  /** The tokens of a text, special ones included; `<bos>` only if the text has one. */
  encode(text: string): Uint32Array {
    return this.#engine.tokenize(text, false, true);
  }

  /** The text of a token. */
  tokenStr(id: number): string {
    return this.#engine.detokenize(Uint32Array.of(id), true);
  }

  /** Whether a token ends replies. */
  isEos(id: number): boolean {
    return this.#engine.isEnd(id);
  }

  /** Reads a token and chooses the one after it. */
  async step(id: number): Promise<number> {
    const { repetition_penalty: penalty, ...options } = this.#sampling;
    const tokens = this.#tokens;
    tokens.push(id);
    const given: GenerateOptions = { ...options, maxTokens: 1, ignoreEos: true };
    if (penalty !== undefined) {
      checkNumber("repetition_penalty", RANGES.repeat_penalty, penalty);
      given.repeatPenalty = penalty;
    }
    // A seed of -1 stays random.
    if (typeof given.seed === "number" && given.seed !== -1) {
      // Each step draws anew; with one seed for all, all would draw the same.
      given.seed += tokens.length;
    }
    const cancel = new this.#wasm.Cancel();
    try {
      const reply = this.#session.generate(Uint32Array.from(tokens), optionsJson(given), () => {}, cancel);
      const json = await unlessBroken(reply);
      const [next] = (JSON.parse(json) as ReplyResult).ids;
      if (next === undefined) {
        throw new RullamaError("context.overflow", `the context of ${this.maxContext} tokens is full`);
      }
      return next;
    } catch (thrown) {
      // What failed was not read.
      tokens.pop();
      throw RullamaError.from(thrown);
    } finally {
      cancel.free();
    }
  }

  /** Forgets everything that was read. */
  reset(): void {
    this.#tokens = [];
    this.#session.clear();
  }

  /** Sets how tokens are chosen. Until then it is always the likeliest. */
  setSampling(options: Sampling): void {
    this.#sampling = { ...options };
  }

  /** The prompt of a conversation, with `<bos>` before it or without. */
  renderChat(messages: readonly Message[], withBos = true): string {
    const prompt = this.#engine.render(messagesJson(messages), optionsJson({ think: false }));
    return withBos ? prompt : prompt.replace(/^<bos>/, "");
  }

  /** Gives the memory back. */
  free(): void {
    this.#session.free();
    this.#engine.unload();
    this.#source.close?.();
  }
}

/** The size of a context; none where it was left out or is 0, which that system took for its default. */
function checkedContext(maxContext: number | undefined): number | undefined {
  if (maxContext === undefined || maxContext === 0) {
    return undefined;
  }
  checkNumber("maxContext", RANGES.context, maxContext);
  return maxContext;
}

/** Waits for something of the module, but not longer than the module lives. */
function unlessBroken<T>(work: Promise<T>): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    const forget = onBroken(reject);
    work.then(resolve, reject).finally(forget);
  });
}

function readerSource(read: ReadFunction, length: number): ByteSource {
  return { name: "reader", length, read: async (offset, count) => read(offset, count) };
}
