// The engine's side: answers calls with the wasm module. One service runs one model. If its GPU fails for good, the model is loaded on
// the CPU, and the conversations and the reply that is being written go on there.

import { RullamaError, toSent } from "./errors.js";
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
  type Cancel,
  type Loaded,
  type Reading,
} from "./loading.js";
import { LoadProgress } from "./progress.js";
import type { Answer, InspectParams, LoadParams, Name, Port, Protocol, ReplyEvent, Request } from "./protocol.js";
import { gpuRuntime, onBroken } from "./runtime.js";
import { fileName } from "./source/addresses.js";
import { open, type OpenOptions } from "./source/open.js";
import type { ByteSource } from "./source/types.js";
import type { ChosenLogprob, DeviceReport, EngineInfo, KernelUse, ModelReport, ProgressEvent, ReplyResult } from "./types.js";
import type { WebEngine, WebSession } from "./wasm/rullama.js";

/** The signal that cancels a call, and the function that sends its events. */
interface Context {
  signal: AbortSignal;
  tell(event: unknown): void;
}

/** A conversation, and the last of the replies that wait for their turn. */
interface OpenSession {
  session: WebSession;
  /** The model that it belongs to. */
  on: Loaded;
  turn: Promise<unknown>;
  /** Cancels its replies. */
  closing: AbortController;
}

type Handlers = {
  [N in Name]: (params: Protocol[N]["params"], context: Context) => Promise<Protocol[N]["result"]>;
};

export class Service {
  readonly #port: Port<Answer, Request>;
  readonly #running = new Map<number, AbortController>();
  readonly #reads = new Map<number, { resolve: (bytes: Uint8Array) => void; reject: (error: RullamaError) => void }>();
  readonly #sessions = new Map<number, OpenSession>();
  readonly #closed = new Set<number>();
  readonly #forget: () => void;
  #nextRead = 1;
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
      case "bytes": {
        const read = this.#reads.get(request.id);
        this.#reads.delete(request.id);
        if (request.error) {
          const { code, message } = request.error;
          return read?.reject(new RullamaError(code, message));
        }
        return read?.resolve(request.bytes as Uint8Array);
      }
    }
  }

  async #call(id: number, name: Name, params: Protocol[Name]["params"]): Promise<void> {
    const controller = new AbortController();
    this.#running.set(id, controller);
    const tell = (event: unknown) => this.#port.post({ kind: "event", id, event });
    try {
      const handler = this.#handlers[name] as Handlers[Name];
      const result = await handler(params as never, { signal: controller.signal, tell });
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
    chat: async ({ session, messages, options }, context) =>
      this.#reply(session, context, (session, begun, onEvent, cancel) => session.chat(messages, begun.after(options), onEvent, cancel)),
    send: async ({ session, message, options }, context) =>
      this.#reply(session, context, (session, begun, onEvent, cancel) => session.send(message, begun.after(options), onEvent, cancel)),
    generate: async ({ session, prompt, options }, context) =>
      this.#reply(session, context, (session, begun, onEvent, cancel) => {
        const ids = typeof prompt === "string" ? this.#engine.tokenize(prompt, true, true) : prompt;
        return session.generate(ids, begun.after(options), onEvent, cancel);
      }),
    messages: async ({ session }) => this.#inTurn(session, async ({ session }) => session.messages()),
    clear: async ({ session }) => this.#inTurn(session, async ({ session }) => session.clear()),
    close: ({ session }) => this.#close(session),
    pause: async ({ paused }) => {
      this.#paused = paused;
      return paused ? this.#engine.pause() : this.#engine.resume();
    },
    unload: () => this.#unload(),
  };

  get #engine(): WebEngine {
    if (!this.#loaded) {
      throw new RullamaError("engine.unloaded", "No model is loaded.");
    }
    return this.#loaded.engine;
  }

  async #load({ store, ...params }: LoadParams, context: Context): Promise<EngineInfo> {
    const { signal } = context;
    const events = new LoadProgress((event) => context.tell(event));
    const sources: ByteSource[] = [];
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
      for (const file of params.sources) {
        const url = file.kind === "url" ? file.url : undefined;
        const onDownload: OpenOptions["onDownload"] = (name, loaded, total) => events.at("download", name, loaded, total, url);
        sources.push(await open(file, { ...options, onDownload }));
      }
      const file = fileName(sources[0]?.name ?? "");
      const progress = (status: ProgressEvent["status"], loaded: number, total: number) =>
        events.at(status, file, loaded, total);
      this.#loaded = await loadModel({ params, sources }, chosen.backend, signal, progress);
      return this.#info();
    } catch (thrown) {
      sources.forEach((source) => source.close?.());
      // A service that failed to load is not used again.
      this.#forget();
      throw thrown;
    }
  }

  async #inspect(params: InspectParams, { signal }: Context): Promise<ModelReport> {
    const { sources: sent, headers } = params;
    const ignore = () => {};
    const readPage = (reader: number, offset: number, length: number) => this.#readPage(reader, offset, length);
    const sources: ByteSource[] = [];
    try {
      const chosen = await chosenRuntime(params);
      for (const file of sent) {
        sources.push(await open(file, { signal, headers, onDownload: ignore, onVerify: ignore, readPage }));
      }
      return await inspectModel({ params, sources }, chosen, signal);
    } finally {
      sources.forEach((source) => source.close?.());
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
    { signal, tell }: Context,
    begin: (session: WebSession, begun: Begun, onEvent: (json: string) => void, cancel: Cancel) => Promise<string>,
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
        const { session, on } = open;
        const before = session.messages();
        try {
          const result = await cancellable(on.wasm, ended, (cancel) => begin(session, begun, onEvent, cancel));
          return begun.whole(JSON.parse(result) as ReplyResult);
        } catch (thrown) {
          if (ended.aborted || !(await this.#leaves(on, thrown))) {
            throw thrown;
          }
          this.#move(open, before);
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

  /** Makes a session one of the model that is loaded now, with these messages. */
  #move(open: OpenSession, messages: string): void {
    open.session.free();
    open.on = this.#loaded as Loaded;
    open.session = open.on.engine.session();
    if (messages !== "[]") {
      open.session.restore(messages);
    }
  }

  /** Runs `work` with a session once everything requested of it earlier is finished. */
  #inTurn<T>(id: number, work: (open: OpenSession) => Promise<T>): Promise<T> {
    const engine = this.#engine;
    if (this.#closed.has(id)) {
      throw new RullamaError("session.closed", "The session is closed.");
    }
    let open = this.#sessions.get(id);
    if (!open) {
      open = { session: engine.session(), on: this.#loaded as Loaded, turn: Promise.resolve(), closing: new AbortController() };
      this.#sessions.set(id, open);
    }
    const own = open;
    const result = own.turn.then(() => {
      if (this.#loaded && this.#loaded !== own.on) {
        this.#move(own, own.session.messages());
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
      open.session.free();
    }
  }

  #readPage(reader: number, offset: number, length: number): Promise<Uint8Array> {
    const id = this.#nextRead++;
    return new Promise((resolve, reject) => {
      this.#reads.set(id, { resolve, reject });
      this.#port.post({ kind: "read", id, reader, offset, length });
    });
  }

  async #unload(): Promise<void> {
    const loaded = this.#loaded;
    this.#loaded = undefined;
    // Every reply has to end before the GPU is released: a session would try to open the GPU again.
    this.#running.forEach((controller) => controller.abort());
    this.#stopMoving.abort();
    await Promise.all([...this.#sessions.values()].map(({ turn }) => turn));
    this.#sessions.forEach(({ session }) => session.free());
    this.#sessions.clear();
    loaded?.engine.unload();
    loaded?.sources.forEach((source) => source.close?.());
    this.#forget();
  }
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
