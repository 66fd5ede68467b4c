// The messages between the two sides of an engine: the caller on the page, and the service that runs the model.
// The same whether the service runs in a worker or on the page's own thread.

import type { SentError } from "./errors.js";
import type {
  Delta,
  DeviceReport,
  EncodeProgress,
  EngineInfo,
  ImageBudget,
  KernelUse,
  ModelReport,
  ProgressEvent,
  ReplyResult,
  StoreOptions,
} from "./types.js";

/** One file of a model, in a form that can be posted to a worker. */
export type SentSource =
  | { kind: "url"; url: string }
  | { kind: "blob"; blob: Blob; name: string }
  | { kind: "bytes"; bytes: Uint8Array }
  /** A file in the package's store, by its name there. */
  | { kind: "stored"; name: string }
  | { kind: "opfs"; path: string }
  /** A reader that stays on the page. The service requests ranges from it. */
  | { kind: "page"; reader: number; name: string; length: number };

/** An image or a sound of a request. It stays on the page, where it has this number, until the service asks for it. */
export interface SentMedium {
  medium: "image" | "audio";
  number: number;
  budget?: ImageBudget;
}

/** The pixels of an image: red, green, blue and opacity, row by row. */
export interface DecodedImage {
  rgba: Uint8Array<ArrayBuffer>;
  width: number;
  height: number;
}

/** A sound: one channel, 16,000 samples a second. */
export interface DecodedSound {
  samples: Float32Array<ArrayBuffer>;
}

export type DecodedMedium = DecodedImage | DecodedSound;

export interface InspectParams {
  sources: SentSource[];
  projector?: SentSource;
  /** Options of the engine, as JSON. */
  options: string;
  headers?: Record<string, string>;
  backend?: "auto" | "gpu" | "cpu";
  wasm?: string | WebAssembly.Module;
  cpuWasm?: string | WebAssembly.Module;
  cpuThreadsWasm?: string | WebAssembly.Module;
  /** Threads on the CPU. */
  threads?: number;
}

export interface LoadParams extends InspectParams {
  /** How files from URLs are stored in the browser. Without it they are not stored. */
  store?: StoreOptions;
}

/** What is known when a reply has read its prompt: the parts of its result that deltas do not carry. */
export interface Started {
  seed: number;
  promptTokens: number;
  reusedTokens: number;
  promptMs: number;
}

/** An event of a reply: one `started`, then deltas. */
export type ReplyEvent = { started: Started } | Delta;

/** An event of a reply to messages: images and sounds are encoded first. */
export type ChatEvent = { encoding: EncodeProgress } | ReplyEvent;

/** What replies to messages have in common. The messages' lists `images` and `audio` have the numbers of `media`, as text. */
interface ReplyParams {
  session: number;
  options: string;
  media?: SentMedium[];
}

/** Every call with its parameters, its result and its events. */
export interface Protocol {
  load: { params: LoadParams; result: EngineInfo; event: ProgressEvent };
  /** Checks a model instead of loading it. */
  inspect: { params: InspectParams; result: ModelReport; event: never };
  /** Examines the GPU instead of loading a model. */
  examine: { params: { options: string; wasm?: string | WebAssembly.Module }; result: DeviceReport; event: never };
  kernels: { params: Record<string, never>; result: KernelUse[]; event: never };
  info: { params: Record<string, never>; result: EngineInfo; event: never };
  tokenize: { params: { text: string; bos: boolean; special: boolean }; result: Uint32Array; event: never };
  detokenize: { params: { ids: Uint32Array; special: boolean }; result: string; event: never };
  render: { params: { messages: string; options: string }; result: string; event: never };
  /** A session is created by the first call that names it. */
  chat: { params: ReplyParams & { messages: string }; result: ReplyResult; event: ChatEvent };
  send: { params: ReplyParams & { message: string }; result: ReplyResult; event: ChatEvent };
  generate: {
    params: { session: number; prompt: string | Uint32Array; options: string };
    result: ReplyResult;
    event: ReplyEvent;
  };
  /** Their lists `images` and `audio` have the numbers of media, as text. */
  messages: { params: { session: number }; result: string; event: never };
  clear: { params: { session: number }; result: void; event: never };
  close: { params: { session: number }; result: void; event: never };
  /** Pauses all replies, or lets them continue. */
  pause: { params: { paused: boolean }; result: void; event: never };
  unload: { params: Record<string, never>; result: void; event: never };
}

export type Name = keyof Protocol;

/** A message from the page. */
export type Request =
  | { kind: "call"; id: number; name: Name; params: Protocol[Name]["params"] }
  | { kind: "cancel"; id: number }
  | { kind: "bytes"; id: number; bytes?: Uint8Array; error?: SentError }
  | { kind: "decoded"; id: number; decoded?: DecodedMedium; error?: SentError };

/** A message to the page. */
export type Answer =
  | { kind: "event"; id: number; event: unknown }
  | { kind: "done"; id: number; result: unknown }
  | { kind: "failed"; id: number; error: SentError }
  /** Requests a range from a reader on the page. */
  | { kind: "read"; id: number; reader: number; offset: number; length: number }
  /** Requests an image or a sound on the page, decoded. It belongs to a call. */
  | { kind: "decode"; id: number; call: number; number: number }
  /** The model is on another backend from now on. */
  | { kind: "moved"; info: EngineInfo }
  /** The service has failed and will not answer any more. */
  | { kind: "broken"; error: SentError };

/** One end of the connection. */
export interface Port<Sent, Received> {
  /** Sends a message. What `moved` lists is not copied to another thread, but moved there. */
  post(message: Sent, moved?: Transferable[]): void;
  listen(listener: (message: Received) => void): void;
  close(): void;
}

/** A connection within one thread. Messages arrive in order, and never before `post` has returned. */
export function line(): [Port<Request, Answer>, Port<Answer, Request>] {
  const listeners: [((message: Answer) => void)?, ((message: Request) => void)?] = [];
  let open = true;
  const deliver = (message: unknown, to: 0 | 1) =>
    queueMicrotask(() => open && (listeners[to] as ((message: unknown) => void) | undefined)?.(message));
  const close = () => {
    open = false;
  };
  return [
    { post: (message) => deliver(message, 1), listen: (listener) => void (listeners[0] = listener), close },
    { post: (message) => deliver(message, 0), listen: (listener) => void (listeners[1] = listener), close },
  ];
}
