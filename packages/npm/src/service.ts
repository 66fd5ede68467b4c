// The engine's side: answers calls with the wasm module. One service runs one model. If its GPU fails for good, the model is loaded on
// the CPU, and the conversations and the reply that is being written go on there.

import { Conversation, type Asked } from "./conversation.js";
import { fromSent, RullamaError, toSent, type SentError } from "./errors.js";
import {
  cancellable,
  chosenRuntime,
  gpuName,
  inspectDownloads,
  inspectModel,
  loadModel,
  loadOn,
  reasonToMove,
  withoutLimit,
  type Loaded,
  type Reading,
} from "./loading.js";
import { encode } from "./media/encode.js";
import { LoadProgress } from "./progress.js";
import type { Answer, DecodedMedium, InspectParams, LoadParams, Name, Port, Protocol, ReplyEvent, Request, SentMedium } from "./protocol.js";
import { gpuRuntime, onBroken } from "./runtime.js";
import { fileName } from "./source/addresses.js";
import { closeFiles, openFiles, type ModelFiles } from "./source/files.js";
import { open, type OpenOptions } from "./source/open.js";
import type { ChosenLogprob, DeviceReport, EncodeProgress, EngineInfo, KernelUse, ModelReport, ProgressEvent, ReplyResult } from "./types.js";
import type { WebEngine } from "./wasm/rullama.js";

/** A call: its number, the signal that cancels it, and the function that sends its events. */
interface Context {
  call: number;
  signal: AbortSignal;
  tell(event: unknown): void;
}

/** An answer of the page that is waited for. */
interface Awaited {
  resolve(value: unknown): void;
  reject(error: RullamaError): void;
}

type Handlers = {
  [N in Name]: (params: Protocol[N]["params"], context: Context) => Promise<Protocol[N]["result"]>;
};

export class Service {
  readonly #port: Port<Answer, Request>;
  readonly #running = new Map<number, AbortController>();
  /** What the page was asked for: ranges of files, images and sounds. */
  readonly #awaited = new Map<number, Awaited>();
  readonly #sessions = new Map<number, Conversation>();
  readonly #closed = new Set<number>();
  readonly #forget: () => void;
  #nextAwaited = 1;
  #loaded: Loaded | undefined;
  /** The load on the CPU, while the model is on its way there. */
  #moving: Promise<boolean> | undefined;
  /** Ends the move to the CPU that is under way. */
  #stopMoving = new AbortController();
  #paused = false;

  constructor(port: Port<Answer, Request>) {
    this.#port = port;
    port.listen((request) => this.#asked(request));
    this.#forget = onBroken((error) => port.post({ kind: "broken", error: toSent(error) }));
  }

  #asked(request: Request): void {
    switch (request.kind) {
      case "call":
        return void this.#call(request.id, request.name, request.params);
      case "cancel":
        return this.#running.get(request.id)?.abort();
      case "bytes":
        return this.#answered(request.id, request.bytes, request.error);
      case "decoded":
        return this.#answered(request.id, request.decoded, request.error);
    }
  }

  #answered(id: number, value: unknown, error: SentError | undefined): void {
    const awaited = this.#awaited.get(id);
    this.#awaited.delete(id);
    return error ? awaited?.reject(fromSent(error)) : awaited?.resolve(value);
  }

  async #call(id: number, name: Name, params: Protocol[Name]["params"]): Promise<void> {
    const controller = new AbortController();
    this.#running.set(id, controller);
    const tell = (event: unknown) => this.#port.post({ kind: "event", id, event });
    try {
      const handler = this.#handlers[name] as Handlers[Name];
      const result = await handler(params as never, { call: id, signal: controller.signal, tell });
      this.#port.post({ kind: "done", id, result });
    } catch (thrown) {
      this.#port.post({ kind: "failed", id, error: toSent(thrown) });
    } finally {
      this.#running.delete(id);
    }
  }

  readonly #handlers: Handlers = {
    load: (params, context) => this.#load(params, context),
    inspect: (params, context) => this.#inspect(params, context),
    examine: (params, context) => this.#examine(params, context),
    kernels: async () => JSON.parse(this.#engine.kernels()) as KernelUse[],
    info: async () => this.#info(),
    tokenize: async ({ text, bos, special }) => this.#engine.tokenize(text, bos, special),
    detokenize: async ({ ids, special }) => this.#engine.detokenize(ids, special),
    render: async ({ messages, options }) => this.#engine.render(messages, options),
    chat: async ({ session, messages, ...params }, context) =>
      this.#reply(session, params, context, (open, asked) => open.chat(messages, asked)),
    send: async ({ session, message, ...params }, context) => this.#reply(session, params, context, (open, asked) => open.send(message, asked)),
    generate: async ({ session, prompt, ...params }, context) =>
      this.#reply(session, params, context, ({ session }, { options, onEvent, cancel }) => {
        const ids = typeof prompt === "string" ? this.#engine.tokenize(prompt, true, true) : prompt;
        return session.generate(ids, options, onEvent, cancel);
      }),
    messages: async ({ session }) => this.#inTurn(session, async (open) => open.messages()),
    clear: async ({ session }) => this.#inTurn(session, async (open) => open.clear()),
    close: ({ session }) => this.#close(session),
    pause: async ({ paused }) => {
      this.#paused = paused;
      return paused ? this.#engine.pause() : this.#engine.resume();
    },
    unload: () => this.#unload(),
  };

  get #engine(): WebEngine {
    if (!this.#loaded) {
      throw unloaded();
    }
    return this.#loaded.engine;
  }

  async #load({ store, ...params }: LoadParams, context: Context): Promise<EngineInfo> {
    const { signal } = context;
    const events = new LoadProgress((event) => context.tell(event));
    let files: ModelFiles | undefined;
    try {
      const chosen = await chosenRuntime(params);
      const options: Reading = {
        signal,
        headers: params.headers,
        store,
        onVerify: (file, loaded, total) => events.at("verify", file, loaded, total),
        readPage: (reader, offset, length) => this.#readPage(reader, offset, length),
      };
      events.expectDownloads(await inspectDownloads(params, chosen, options));
      files = await openFiles(params, store, (file, store) => {
        const url = file.kind === "url" ? file.url : undefined;
        const onDownload: OpenOptions["onDownload"] = (name, loaded, total) => events.at("download", name, loaded, total, url);
        return open(file, { ...options, store, onDownload });
      });
      const file = fileName(files.sources[0]?.name ?? "");
      const progress = (status: ProgressEvent["status"], loaded: number, total: number) =>
        events.at(status, file, loaded, total);
      this.#loaded = await loadModel({ params, files }, chosen.backend, signal, progress);
      return this.#info();
    } catch (thrown) {
      if (files) {
        closeFiles(files);
      }
      // A service that failed to load is not used again.
      this.#forget();
      throw thrown;
    }
  }

  async #inspect(params: InspectParams, { signal }: Context): Promise<ModelReport> {
    const ignore = () => {};
    const readPage = (reader: number, offset: number, length: number) => this.#readPage(reader, offset, length);
    let files: ModelFiles | undefined;
    try {
      const chosen = await chosenRuntime(params);
      const options: OpenOptions = { signal, headers: params.headers, onDownload: ignore, onVerify: ignore, readPage };
      files = await openFiles(params, undefined, (file) => open(file, options));
      return await inspectModel({ params, files }, chosen, signal);
    } finally {
      if (files) {
        closeFiles(files);
      }
      // A service that has inspected a model is not used again.
      this.#forget();
    }
  }

  async #examine({ options, wasm: location }: Protocol["examine"]["params"], { signal }: Context): Promise<DeviceReport> {
    try {
      const wasm = await gpuRuntime(location);
      const report = await cancellable(wasm, signal, (cancel) => wasm.examine(options, cancel));
      const found = JSON.parse(report) as DeviceReport;
      found.gpu.name ||= await gpuName();
      return found;
    } finally {
      // A service that has examined the GPU is not used again.
      this.#forget();
    }
  }

  #info(): EngineInfo {
    const info = JSON.parse(this.#engine.info()) as EngineInfo;
    const { backend, gpuName } = this.#loaded as Loaded;
    if (info.gpu) {
      info.gpu.name ||= gpuName;
    }
    return { ...info, backend: { ...backend, ...info.backend } };
  }

  /** Writes a reply of a session once the earlier ones are finished. */
  #reply(
    id: number,
    { options, media = [] }: { options: string; media?: SentMedium[] },
    { call, signal, tell }: Context,
    begin: (open: Conversation, asked: Asked) => Promise<string>,
  ): Promise<ReplyResult> {
    const begun = new Begun();
    const onEvent = (json: string) => {
      const event = JSON.parse(json) as ReplyEvent;
      if (begun.isNew(event)) {
        tell("started" in event ? event : { ...event, text: event.text ?? "" });
      }
    };
    return this.#inTurn(id, async (open) => {
      const ended = AbortSignal.any([signal, open.closing.signal]);
      for (;;) {
        const { on } = open;
        const before = open.messages();
        try {
          const result = await cancellable(on.wasm, ended, (cancel) => {
            const encoding = {
              engine: on.engine,
              cancel,
              decoded: (medium: SentMedium) => this.#decoded(call, medium, ended),
              tell: (progress: EncodeProgress) => tell({ encoding: progress }),
            };
            return begin(open, { media, options: begun.after(options), encode: (media) => encode(media, encoding), onEvent, cancel });
          });
          return begun.whole(JSON.parse(result) as ReplyResult);
        } catch (thrown) {
          if (ended.aborted || !(await this.#leaves(on, thrown))) {
            throw thrown;
          }
          open.move(this.#loaded as Loaded, before);
        }
      }
    });
  }

  /** Whether the model is on the CPU after this error of the GPU; loads it there. */
  #leaves(from: Loaded, thrown: unknown): Promise<boolean> | boolean {
    if (this.#loaded !== from) {
      // Another session had the same error before.
      return this.#loaded !== undefined;
    }
    const why = from.backend.kind === "gpu" ? reasonToMove(from, thrown) : undefined;
    if (why === undefined) {
      return false;
    }
    this.#moving ??= this.#loadOnCpu(from, why).finally(() => {
      this.#moving = undefined;
    });
    return this.#moving;
  }

  async #loadOnCpu(from: Loaded, reason: string): Promise<boolean> {
    console.warn(`rullama: ${reason} The model is loaded on the CPU, and the conversation goes on there.`);
    this.#stopMoving = new AbortController();
    const loaded = await loadOn({ kind: "cpu", reason }, withoutLimit(from), this.#stopMoving.signal, () => {}).catch((error: unknown) => {
      console.warn(`rullama: the CPU can't take over: ${String(error)}`);
    });
    if (!loaded || this.#loaded !== from) {
      loaded?.engine.unload();
      return false;
    }
    this.#loaded = loaded;
    from.engine.unload();
    if (this.#paused) {
      loaded.engine.pause();
    }
    this.#port.post({ kind: "moved", info: this.#info() });
    return true;
  }

  /** Runs `work` with a session once everything requested of it earlier is finished. */
  #inTurn<T>(id: number, work: (open: Conversation) => Promise<T>): Promise<T> {
    if (!this.#loaded) {
      throw unloaded();
    }
    if (this.#closed.has(id)) {
      throw new RullamaError("session.closed", "The session is closed.");
    }
    let open = this.#sessions.get(id);
    if (!open) {
      open = new Conversation(this.#loaded);
      this.#sessions.set(id, open);
    }
    const own = open;
    const result = own.turn.then(() => {
      if (this.#loaded && this.#loaded !== own.on) {
        own.move(this.#loaded, own.messages());
      }
      return work(own);
    });
    // The next call gets its turn even if this one fails.
    own.turn = result.catch(() => {});
    return result;
  }

  /** Cancels the replies of a session and frees it when they have ended. */
  async #close(id: number): Promise<void> {
    this.#closed.add(id);
    const open = this.#sessions.get(id);
    if (!open) {
      return;
    }
    open.closing.abort();
    await open.turn;
    // `#unload` may have freed it in the meantime.
    if (this.#sessions.delete(id)) {
      open.free();
    }
  }

  #readPage(reader: number, offset: number, length: number): Promise<Uint8Array> {
    return this.#ask((id) => ({ kind: "read", id, reader, offset, length }));
  }

  /** An image or a sound of a call. */
  #decoded(call: number, { number }: SentMedium, signal: AbortSignal): Promise<DecodedMedium> {
    return this.#ask((id) => ({ kind: "decode", id, call, number }), signal);
  }

  /** Asks the page for something, and waits for it, but not once `signal` is aborted. */
  #ask<T>(question: (id: number) => Answer, signal?: AbortSignal): Promise<T> {
    const id = this.#nextAwaited++;
    const giveUp = () => this.#answered(id, undefined, toSent(RullamaError.cancelled()));
    return new Promise<unknown>((resolve, reject) => {
      this.#awaited.set(id, { resolve, reject });
      signal?.addEventListener("abort", giveUp);
      if (signal?.aborted) {
        return giveUp();
      }
      this.#port.post(question(id));
    }).finally(() => signal?.removeEventListener("abort", giveUp)) as Promise<T>;
  }

  async #unload(): Promise<void> {
    const loaded = this.#loaded;
    this.#loaded = undefined;
    // Every reply has to end before the GPU is released: a session would try to open the GPU again.
    this.#running.forEach((controller) => controller.abort());
    this.#stopMoving.abort();
    await Promise.all([...this.#sessions.values()].map(({ turn }) => turn));
    this.#sessions.forEach((open) => open.free());
    this.#sessions.clear();
    loaded?.engine.unload();
    if (loaded) {
      closeFiles(loaded.files);
    }
    this.#forget();
  }
}

function unloaded(): RullamaError {
  return new RullamaError("engine.unloaded", "No model is loaded.");
}

/** The part of a reply that has been told, so that another backend can write the rest. */
class Begun {
  readonly #ids: number[] = [];
  readonly #logprobs: ChosenLogprob[] = [];
  #seed: number | undefined;

  /** Notes an event. Whether it is to be told: a reply starts once. */
  isNew(event: ReplyEvent): boolean {
    if ("started" in event) {
      const first = this.#seed === undefined;
      this.#seed ??= event.started.seed;
      return first;
    }
    this.#ids.push(...event.ids);
    this.#logprobs.push(...(event.logprobs ?? []));
    return true;
  }

  /** The options of the rest. */
  after(options: string): string {
    return this.#seed === undefined ? options : JSON.stringify({ ...(JSON.parse(options) as object), seed: this.#seed, begun: this.#ids });
  }

  /** The result of the rest as that of the whole reply. It has all tokens, but cannot know how probable the first ones were. */
  whole(result: ReplyResult): ReplyResult {
    return result.logprobs ? { ...result, logprobs: [...this.#logprobs, ...result.logprobs.slice(this.#logprobs.length)] } : result;
  }
}
