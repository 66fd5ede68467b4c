// Where an engine runs: in a worker, which is the default, or on the thread that asks.

import { Caller } from "./caller.js";
import { RullamaError } from "./errors.js";
import { line, type Answer } from "./protocol.js";
import { Service } from "./service.js";

/** Workers of callers' own that run an engine. */
const taken = new WeakSet<Worker>();

/** A line to an engine that has no model yet. Breaking it ends the engine. */
export function connect(where: boolean | "blob" | Worker): Caller {
  if (where === false) {
    const [here, there] = line();
    new Service(there);
    return new Caller(here);
  }
  if (typeof where === "object") {
    if (taken.has(where)) {
      throw new RullamaError("option.wrong_type", "the worker runs an engine already; each needs one of its own");
    }
    taken.add(where);
  }
  const worker = typeof where === "object" ? where : where === "blob" ? blobWorker() : ownWorker();
  const caller = new Caller({
    post: (message) => worker.postMessage(message),
    listen: (listener) => {
      worker.addEventListener("message", ({ data }: MessageEvent<Answer>) => listener(data));
    },
    close: () => worker.terminate(),
  });
  worker.addEventListener("error", (event) => {
    event.preventDefault();
    const reason = event.message || "it could not be started; is its file served, and from the page's own origin?";
    caller.break(new RullamaError("worker.failed", `the engine's worker failed: ${reason}`));
  });
  worker.addEventListener("messageerror", () => {
    caller.break(new RullamaError("worker.failed", "the engine's worker sent something unreadable"));
  });
  return caller;
}

function ownWorker(): Worker {
  // Bundlers look for exactly this expression.
  return new Worker(new URL("./worker.js", import.meta.url), { type: "module", name: "rullama" });
}

/** A worker of the page's origin that imports ours from wherever it is. */
function blobWorker(): Worker {
  const text = `import ${JSON.stringify(new URL("./worker.js", import.meta.url).href)};`;
  const url = URL.createObjectURL(new Blob([text], { type: "text/javascript" }));
  const worker = new Worker(url, { type: "module", name: "rullama" });
  // It has read the address by the time that it says anything.
  worker.addEventListener("message", () => URL.revokeObjectURL(url), { once: true });
  return worker;
}
