// What the two sides of an engine say to each other: the page, which calls, and whoever runs the model, which answers.
// The same in a worker and on the page's own thread.

import type { SentError } from "./errors.js";
import type {
  Delta,
  DeviceReport,
  EngineInfo,
  KernelUse,
  ProgressEvent,
  ReplyResult,
  StoreOptions,
} from "./types.js";

/** One file of a model, in a form that can be sent. */
export type SentSource =
  | { kind: "url"; url: string }
  | { kind: "blob"; blob: Blob; name: string }
  | { kind: "bytes"; bytes: Uint8Array }
  /** A file of the package's store, by the name that it has there. */
  | { kind: "stored"; name: string }
  | { kind: "opfs"; path: string }
  /** A reader that stays on the page and is asked for ranges. */
  | { kind: "page"; reader: number; name: string; length: number };

export interface LoadParams {
  sources: SentSource[];
  /** Options of the engine, as JSON. */
  options: string;
  headers?: Record<string, string>;
  /** Whether addresses are kept in the browser, and how. */
  store?: StoreOptions;
  wasm?: string | WebAssembly.Module;
}

/** Every call, with what it takes, what it gives back, and what it tells on the way. */
export interface Protocol {
  load: { params: LoadParams; result: EngineInfo; event: ProgressEvent };
  /** Instead of loading a model: looks at the GPU. */
  examine: { params: { options: string; wasm?: string | WebAssembly.Module }; result: DeviceReport; event: never };
  kernels: { params: Record<string, never>; result: KernelUse[]; event: never };
  info: { params: Record<string, never>; result: EngineInfo; event: never };
  tokenize: { params: { text: string; bos: boolean; special: boolean }; result: Uint32Array; event: never };
  detokenize: { params: { ids: Uint32Array; special: boolean }; result: string; event: never };
  render: { params: { messages: string; options: string }; result: string; event: never };
  /** Sessions are made when they are first named. */
  chat: { params: { session: number; messages: string; options: string }; result: ReplyResult; event: Delta };
  send: { params: { session: number; message: string; options: string }; result: ReplyResult; event: Delta };
  generate: {
    params: { session: number; prompt: string | Uint32Array; options: string };
    result: ReplyResult;
    event: Delta;
  };
  messages: { params: { session: number }; result: string; event: never };
  clear: { params: { session: number }; result: void; event: never };
  close: { params: { session: number }; result: void; event: never };
  /** Holds replies back, or lets them go on. */
  pause: { params: { paused: boolean }; result: void; event: never };
  unload: { params: Record<string, never>; result: void; event: never };
}

export type Name = keyof Protocol;

/** From the page. */
export type Request =
  | { kind: "call"; id: number; name: Name; params: Protocol[Name]["params"] }
  | { kind: "cancel"; id: number }
  | { kind: "bytes"; id: number; bytes?: Uint8Array; error?: SentError };

/** To the page. */
export type Answer =
  | { kind: "event"; id: number; event: unknown }
  | { kind: "done"; id: number; result: unknown }
  | { kind: "failed"; id: number; error: SentError }
  /** Asks a reader of the page for a range. */
  | { kind: "read"; id: number; reader: number; offset: number; length: number }
  /** Nothing will be answered any more. */
  | { kind: "broken"; error: SentError };

/** One end of a line between the two. */
export interface Port<Sent, Received> {
  post(message: Sent): void;
  listen(listener: (message: Received) => void): void;
  close(): void;
}

/** A line within one thread. Messages arrive in order, and never before the sender is done. */
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
