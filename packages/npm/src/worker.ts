// The worker that runs an engine. The page starts it and sends it calls.

import type { Answer, Request } from "./protocol.js";
import { Service } from "./service.js";

/** The part of a worker's global scope that this file uses. */
interface Scope {
  postMessage(message: unknown): void;
  addEventListener(type: "message", listener: (event: MessageEvent<Request>) => void): void;
  close(): void;
}

const scope = globalThis as unknown as Scope;

new Service({
  post: (message: Answer) => scope.postMessage(message),
  listen: (listener) => scope.addEventListener("message", ({ data }) => listener(data)),
  close: () => scope.close(),
});
