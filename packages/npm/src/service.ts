// The engine's side: answers calls with the wasm module. One service runs one model.

import { chooseBackend } from "./backend.js";
import { RullamaError, toSent } from "./errors.js";
import { LoadProgress } from "./progress.js";
import type { Answer, InspectParams, LoadParams, Name, Port, Protocol, ReplyEvent, Request } from "./protocol.js";
import { gpuRuntime, onBroken, runtime, type Runtime } from "./runtime.js";
import { fileName } from "./source/addresses.js";
import { isStored, open, openRemote, type OpenOptions } from "./source/open.js";
import type { ByteSource } from "./source/types.js";
import type { BackendInfo, DeviceReport, EngineInfo, KernelUse, ModelReport, ProgressEvent, ReplyResult } from "./types.js";
import type { WebEngine, WebSession } from "./wasm/rullama.js";

/** The signal that cancels a call, and the function that sends its events. */
interface Context {
  signal: AbortSignal;
  tell(event: unknown): void;
}

/** A model with everything that was opened for it. */
interface Loaded {
  wasm: Runtime;
  engine: WebEngine;
  sources: ByteSource[];
  backend: BackendInfo;
  gpuName: string;
}

/** A conversation, and the last of the replies that wait for their turn. */
interface OpenSession {
  session: WebSession;
  turn: Promise<unknown>;
  /** Cancels its replies. */
  closing: AbortController;
}

/** How files are opened, whether their downloads are reported or not. */
type Reading = Omit<OpenOptions, "onDownload">;

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
    inspect: (params, context) => this.#inspect(params, context),
    examine: (params, context) => this.#examine(params, context),
    kernels: async () => JSON.parse(this.#engine.kernels()) as KernelUse[],
    info: async () => this.#info(),
    tokenize: async ({ text, bos, special }) => this.#engine.tokenize(text, bos, special),
    detokenize: async ({ ids, special }) => this.#engine.detokenize(ids, special),
    render: async ({ messages, options }) => this.#engine.render(messages, options),
    chat: async ({ session, messages, options }, context) =>
      this.#reply(session, context, (session, onEvent, cancel) => session.chat(messages, options, onEvent, cancel)),
    send: async ({ session, message, options }, context) =>
      this.#reply(session, context, (session, onEvent, cancel) => session.send(message, options, onEvent, cancel)),
    generate: async ({ session, prompt, options }, context) =>
      this.#reply(session, context, (session, onEvent, cancel) => {
        const ids = typeof prompt === "string" ? this.#engine.tokenize(prompt, true, true) : prompt;
        return session.generate(ids, options, onEvent, cancel);
      }),
    messages: async ({ session }) => this.#inTurn(session, async ({ session }) => session.messages()),
    clear: async ({ session }) => this.#inTurn(session, async ({ session }) => session.clear()),
    close: ({ session }) => this.#close(session),
    pause: async ({ paused }) => (paused ? this.#engine.pause() : this.#engine.resume()),
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
      const { backend, wasm } = await chosenRuntime(params);
      const options: Reading = {
        signal,
        headers: params.headers,
        store,
        onVerify: (file, loaded, total) => events.at("verify", file, loaded, total),
        readPage: (reader, offset, length) => this.#readPage(reader, offset, length),
      };
      events.expectDownloads(await inspectDownloads(wasm, params, options));
      for (const file of params.sources) {
        const url = file.kind === "url" ? file.url : undefined;
        const onDownload: OpenOptions["onDownload"] = (name, loaded, total) => events.at("download", name, loaded, total, url);
        sources.push(await open(file, { ...options, onDownload }));
      }
      const file = fileName(sources[0]?.name ?? "");
      const progress = (status: ProgressEvent["status"], loaded: number, total: number) =>
        events.at(status, file, loaded, total);
      const name = backend.kind === "gpu" ? await gpuName() : "";
      const load = (cancel: Cancel) => wasm.WebEngine.load(sources, params.options, progress, cancel);
      const engine = await cancellable(wasm, signal, load);
      this.#loaded = { wasm, engine, sources, backend, gpuName: name };
      return this.#info();
    } catch (thrown) {
      sources.forEach((source) => source.close?.());
      // A service that failed to load is not used again.
      this.#forget();
      throw thrown;
    }
  }

  async #inspect(params: InspectParams, { signal }: Context): Promise<ModelReport> {
    const { sources: sent, options, headers } = params;
    const ignore = () => {};
    const readPage = (reader: number, offset: number, length: number) => this.#readPage(reader, offset, length);
    const sources: ByteSource[] = [];
    try {
      const { backend, wasm } = await chosenRuntime(params);
      for (const file of sent) {
        sources.push(await open(file, { signal, headers, onDownload: ignore, onVerify: ignore, readPage }));
      }
      const report = await cancellable(wasm, signal, (cancel) => wasm.inspect(sources, options, cancel));
      return { ...(JSON.parse(report) as ModelReport), backend };
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
    return { ...info, backend };
  }

  /** Writes a reply of a session once the earlier ones are finished. */
  #reply(
    id: number,
    { signal, tell }: Context,
    begin: (session: WebSession, onEvent: (json: string) => void, cancel: Cancel) => Promise<string>,
  ): Promise<ReplyResult> {
    const onEvent = (json: string) => {
      const event = JSON.parse(json) as ReplyEvent;
      tell("started" in event ? event : { ...event, text: event.text ?? "" });
    };
    return this.#inTurn(id, async ({ session, closing }, wasm) => {
      const ended = AbortSignal.any([signal, closing.signal]);
      return JSON.parse(await cancellable(wasm, ended, (cancel) => begin(session, onEvent, cancel))) as ReplyResult;
    });
  }

  /** Runs `work` with a session once everything requested of it earlier is finished. */
  #inTurn<T>(id: number, work: (open: OpenSession, wasm: Runtime) => Promise<T>): Promise<T> {
    const engine = this.#engine;
    const wasm = this.#loaded?.wasm as Runtime;
    if (this.#closed.has(id)) {
      throw new RullamaError("session.closed", "The session is closed.");
    }
    let open = this.#sessions.get(id);
    if (!open) {
      open = { session: engine.session(), turn: Promise.resolve(), closing: new AbortController() };
      this.#sessions.set(id, open);
    }
    const own = open;
    const result = own.turn.then(() => work(own, wasm));
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
    await Promise.all([...this.#sessions.values()].map(({ turn }) => turn));
    this.#sessions.forEach(({ session }) => session.free());
    this.#sessions.clear();
    loaded?.engine.unload();
    loaded?.sources.forEach((source) => source.close?.());
    this.#forget();
  }
}

type Cancel = InstanceType<Runtime["Cancel"]>;

/** The backend that computes, and its module. */
async function chosenRuntime({ backend: asked, wasm, cpuWasm }: InspectParams): Promise<{ backend: BackendInfo; wasm: Runtime }> {
  const backend = await chooseBackend(asked);
  return { backend, wasm: await runtime(backend.kind, backend.kind === "gpu" ? wasm : cpuWasm) };
}

/** Runs `work` with a cancel handle that follows the signal. */
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

/**
 * The errors of servers that answer Range requests with the whole file or with a wrong `Content-Range`, so that the header cannot be
 * read alone. The download itself can still work, and loading checks the model.
 */
const UNREADABLE: readonly string[] = ["source.range_ignored", "source.content_range"];

/**
 * Inspects a model whose files are about to be downloaded into the store, so that a model that cannot run here is not downloaded at
 * all. Gives the URLs of the files to download: none if nothing is to be stored or all files are in the store already.
 */
async function inspectDownloads(wasm: Runtime, { sources: sent, options }: InspectParams, opening: Reading): Promise<Set<string>> {
  const { store, ...reading } = opening;
  const remote = new Set<string>();
  if (!store) {
    return remote;
  }
  for (const file of sent) {
    if (file.kind === "url" && !(await isStored(file.url, store))) {
      remote.add(file.url);
    }
  }
  if (remote.size === 0) {
    return remote;
  }
  const silent: OpenOptions = { ...reading, onDownload: () => {}, onVerify: () => {} };
  const sources: ByteSource[] = [];
  try {
    for (const file of sent) {
      const isRemote = file.kind === "url" && remote.has(file.url);
      sources.push(isRemote ? await openRemote(file.url, silent) : await open(file, file.kind === "url" ? { ...silent, store } : silent));
    }
    await cancellable(wasm, opening.signal, (cancel) => wasm.inspect(sources, options, cancel));
  } catch (thrown) {
    if (!UNREADABLE.includes(String((thrown as { code?: unknown }).code))) {
      throw thrown;
    }
  } finally {
    sources.forEach((source) => source.close?.());
  }
  return remote;
}

/** The GPU's name as the browser reports it. wgpu does not ask for all of it. */
async function gpuName(): Promise<string> {
  interface Adapter {
    info?: { description?: string; vendor?: string; architecture?: string };
  }
  const { gpu } = navigator as unknown as { gpu: { requestAdapter(options: object): Promise<Adapter | null> } };
  const info = (await gpu.requestAdapter({ powerPreference: "high-performance" }))?.info;
  return info?.description || [info?.vendor, info?.architecture].filter(Boolean).join(" ");
}
