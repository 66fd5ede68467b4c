// The engine's side: answers calls with the wasm module. One service runs one model.

import { RullamaError, toSent } from "./errors.js";
import type { Answer, LoadParams, Name, Port, Protocol, Request } from "./protocol.js";
import { onBroken, runtime, type Runtime } from "./runtime.js";
import { fileName, open } from "./source/open.js";
import type { ByteSource } from "./source/types.js";
import type { Delta, DeviceReport, EngineInfo, KernelUse, ProgressEvent, ReplyResult } from "./types.js";
import type { WebEngine, WebSession } from "./wasm/rullama.js";

/** What a call can do besides giving its result. */
interface Context {
  signal: AbortSignal;
  tell(event: unknown): void;
}

/** A model with everything that was opened for it. */
interface Loaded {
  wasm: Runtime;
  engine: WebEngine;
  sources: ByteSource[];
  gpuName: string;
}

/** A conversation, and the last of the replies that wait for their turn. */
interface OpenSession {
  session: WebSession;
  turn: Promise<unknown>;
  /** Ends its replies. */
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
    examine: (params, context) => this.#examine(params, context),
    kernels: async () => JSON.parse(this.#engine.kernels()) as KernelUse[],
    info: async () => this.#info(),
    tokenize: async ({ text, bos, special }) => this.#engine.tokenize(text, bos, special),
    detokenize: async ({ ids, special }) => this.#engine.detokenize(ids, special),
    render: async ({ messages, options }) => this.#engine.render(messages, options),
    chat: async ({ session, messages, options }, context) =>
      this.#reply(session, context, (session, onDelta, cancel) => session.chat(messages, options, onDelta, cancel)),
    send: async ({ session, message, options }, context) =>
      this.#reply(session, context, (session, onDelta, cancel) => session.send(message, options, onDelta, cancel)),
    generate: async ({ session, prompt, options }, context) =>
      this.#reply(session, context, (session, onDelta, cancel) => {
        const ids = typeof prompt === "string" ? this.#engine.tokenize(prompt, true, true) : prompt;
        return session.generate(ids, options, onDelta, cancel);
      }),
    messages: async ({ session }) => this.#inTurn(session, async ({ session }) => session.messages()),
    clear: async ({ session }) => this.#inTurn(session, async ({ session }) => session.clear()),
    close: ({ session }) => this.#close(session),
    pause: async ({ paused }) => (paused ? this.#engine.pause() : this.#engine.resume()),
    unload: () => this.#unload(),
  };

  get #engine(): WebEngine {
    if (!this.#loaded) {
      throw new RullamaError("engine.unloaded", "no model is loaded");
    }
    return this.#loaded.engine;
  }

  async #load({ sources: sent, options, headers, store, wasm: location }: LoadParams, context: Context): Promise<EngineInfo> {
    const { signal } = context;
    const tell = throttled((event) => context.tell(event));
    const sources: ByteSource[] = [];
    try {
      const wasm = await runtime(location);
      for (const file of sent) {
        sources.push(
          await open(file, {
            signal,
            headers,
            store,
            onDownload: (file, loaded, total) => tell("download", file, loaded, total),
            onVerify: (file, loaded, total) => tell("verify", file, loaded, total),
            readPage: (reader, offset, length) => this.#readPage(reader, offset, length),
          }),
        );
      }
      const file = fileName(sources[0]?.name ?? "");
      const progress = (status: ProgressEvent["status"], loaded: number, total: number) =>
        tell(status, file, loaded, total);
      const name = await gpuName();
      const load = (cancel: Cancel) => wasm.WebEngine.load(sources, options, progress, cancel);
      const engine = await cancellable(wasm, signal, load);
      this.#loaded = { wasm, engine, sources, gpuName: name };
      return this.#info();
    } catch (thrown) {
      sources.forEach((source) => source.close?.());
      // Nobody will ask for anything else.
      this.#forget();
      throw thrown;
    }
  }

  async #examine({ options, wasm: location }: Protocol["examine"]["params"], { signal }: Context): Promise<DeviceReport> {
    try {
      const wasm = await runtime(location);
      const report = await cancellable(wasm, signal, (cancel) => wasm.examine(options, cancel));
      const found = JSON.parse(report) as DeviceReport;
      found.gpu.name ||= await gpuName();
      return found;
    } finally {
      // Nobody will ask for anything else.
      this.#forget();
    }
  }

  #info(): EngineInfo {
    const info = JSON.parse(this.#engine.info()) as EngineInfo;
    info.gpu.name ||= this.#loaded?.gpuName ?? "";
    return info;
  }

  /** A reply of a session, when its turn comes. */
  #reply(
    id: number,
    { signal, tell }: Context,
    begin: (session: WebSession, onDelta: (json: string) => void, cancel: Cancel) => Promise<string>,
  ): Promise<ReplyResult> {
    const onDelta = (json: string) => tell({ text: "", ...(JSON.parse(json) as Partial<Delta>) });
    return this.#inTurn(id, async ({ session, closing }, wasm) => {
      const ended = AbortSignal.any([signal, closing.signal]);
      return JSON.parse(await cancellable(wasm, ended, (cancel) => begin(session, onDelta, cancel))) as ReplyResult;
    });
  }

  /** Does `work` with a session once all that was asked of it before is done. */
  #inTurn<T>(id: number, work: (open: OpenSession, wasm: Runtime) => Promise<T>): Promise<T> {
    const engine = this.#engine;
    const wasm = this.#loaded?.wasm as Runtime;
    if (this.#closed.has(id)) {
      throw new RullamaError("session.closed", "the session was closed");
    }
    let open = this.#sessions.get(id);
    if (!open) {
      open = { session: engine.session(), turn: Promise.resolve(), closing: new AbortController() };
      this.#sessions.set(id, open);
    }
    const own = open;
    const result = own.turn.then(() => work(own, wasm));
    // Whether it succeeds or not, it is the next one's turn.
    own.turn = result.catch(() => {});
    return result;
  }

  /** Ends what a session writes, and frees it once that is over. */
  async #close(id: number): Promise<void> {
    this.#closed.add(id);
    const open = this.#sessions.get(id);
    if (!open) {
      return;
    }
    open.closing.abort();
    await open.turn;
    // Unloading may have been faster.
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
    // Nothing may be under way when the GPU goes: a session would try to get it back.
    this.#running.forEach((controller) => controller.abort());
    await Promise.all([...this.#sessions.values()].map(({ turn }) => turn));
    this.#sessions.forEach(({ session }) => session.free());
    this.#sessions.clear();
    loaded?.engine.unload();
    loaded?.sources.forEach((source) => source.close?.());
    this.#forget();
  }
}

type Cancel = InstanceType<Runtime["Cancel"]>;

/** Does `work` with a handle that the signal pulls. */
async function cancellable<T>(wasm: Runtime, signal: AbortSignal, work: (cancel: Cancel) => Promise<T>): Promise<T> {
  if (signal.aborted) {
    throw RullamaError.cancelled();
  }
  const cancel = new wasm.Cancel();
  const abort = () => cancel.cancel();
  signal.addEventListener("abort", abort);
  try {
    return await work(cancel);
  } finally {
    signal.removeEventListener("abort", abort);
    cancel.free();
  }
}

/** Milliseconds between two events of one kind, but for the first and the last: screens show no more. */
const EVENT_PAUSE = 50;

type Tell = (status: ProgressEvent["status"], file: string, loaded: number, total: number) => void;

/** Tells how far something has got, not oftener than anybody can see. */
function throttled(tell: (event: ProgressEvent) => void): Tell {
  const last = new Map<string, { time: number; loaded: number }>();
  return (status, file, loaded, total) => {
    const key = `${status} ${file}`;
    const before = last.get(key);
    const time = performance.now();
    const early = before && time - before.time < EVENT_PAUSE && loaded < total;
    if (early || before?.loaded === loaded) {
      return;
    }
    last.set(key, { time, loaded });
    tell({ status, file, loaded, total, progress: total > 0 ? loaded / total : 1 });
  };
}

/** What the browser says of the GPU, which is more than wgpu asks for. */
async function gpuName(): Promise<string> {
  interface Adapter {
    info?: { description?: string; vendor?: string; architecture?: string };
  }
  const { gpu } = navigator as unknown as { gpu: { requestAdapter(options: object): Promise<Adapter | null> } };
  const info = (await gpu.requestAdapter({ powerPreference: "high-performance" }))?.info;
  return info?.description || [info?.vendor, info?.architecture].filter(Boolean).join(" ");
}
