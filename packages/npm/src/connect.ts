// Starts an engine's service: in a worker, which is the default, or on the calling thread.

import { Caller } from "./caller.js";
import { RullamaError } from "./errors.js";
import { BUNDLER_HINT } from "./hints.js";
import { line, type Answer } from "./protocol.js";
import { Service } from "./service.js";

/** Callers' own workers that already run an engine. */
const taken = new WeakSet<Worker>();

/** A connection to an engine that has no model yet. Breaking it ends the engine. */
export function connect(where: boolean | "blob" | Worker): Caller {
  if (where === false) {
    const [here, there] = line();
    new Service(there);
    return new Caller(here);
  }
  if (typeof where === "object") {
    if (taken.has(where)) {
      throw new RullamaError("option.wrong_type", "The worker already runs an engine. Each engine needs its own worker.");
    }
    taken.add(where);
  }
  const worker = typeof where === "object" ? where : where === "blob" ? blobWorker() : ownWorker();
  let answered = false;
  const caller = new Caller({
    post: (message, moved = []) => worker.postMessage(message, moved),
    listen: (listener) => {
      worker.addEventListener("message", ({ data }: MessageEvent<Answer>) => {
        answered = true;
        listener(data);
      });
    },
    close: () => worker.terminate(),
  });
  worker.addEventListener("error", (event) => {
    event.preventDefault();
    caller.break(workerError(event.message, answered));
  });
  worker.addEventListener("messageerror", () => {
    caller.break(new RullamaError("worker.failed", "A message from the engine's worker could not be read."));
  });
  return caller;
}

/**
 * The error of a worker that failed. Browsers give no reason if the script cannot be loaded; with one, and after a first answer, the
 * script was loaded and threw.
 */
export function workerError(reason: string | undefined, answered: boolean): RullamaError {
  if (answered) {
    return new RullamaError("worker.failed", `The engine's worker failed: ${reason || "the browser gives no reason"}.`);
  }
  const why = reason ? `: ${reason}.` : ".";
  const origin = "A page that loads the package from another origin, such as a CDN, needs the option `worker: \"blob\"`.";
  return new RullamaError("worker.failed", `The engine's worker script could not be loaded${why} ${BUNDLER_HINT} ${origin}`);
}

function ownWorker(): Worker {
  try {
    // Bundlers look for exactly this expression.
    return new Worker(new URL("./worker.js", import.meta.url), { type: "module", name: "rullama" });
  } catch (cause) {
    // A script of another origin is refused here, without an event.
    throw workerError(cause instanceof Error ? cause.message : String(cause), false);
  }
}

/** A worker of the page's origin that imports the package's worker from wherever the package is. */
function blobWorker(): Worker {
  const text = `import ${JSON.stringify(new URL("./worker.js", import.meta.url).href)};`;
  const url = URL.createObjectURL(new Blob([text], { type: "text/javascript" }));
  const worker = new Worker(url, { type: "module", name: "rullama" });
  // The worker has read the URL when its first message arrives.
  worker.addEventListener("message", () => URL.revokeObjectURL(url), { once: true });
  return worker;
}
