// What the server that brought this page offers, if it is one of ours: models, and a place for measurements and errors.

import { Emitter } from "../state/emitter";

export interface ServerModel {
  name: string;
  bytes: number;
  url: string;
  sha256?: string;
  family?: string;
  parameters?: string;
  format?: string;
}

/** Milliseconds after which a server that does not answer counts as none. */
const PATIENCE = 3000;

/** The most bytes of a text that the server's log takes. */
export const LOG_BYTES = 16 * 1024;

export class Server {
  /** What the server offers became something else. */
  readonly changed = new Emitter();
  #models: readonly ServerModel[] | undefined;
  #asked = 0;
  #answered: Promise<void> = Promise.resolve();

  /** The models the server has; undefined if it is an ordinary server, or none has answered. */
  get models(): readonly ServerModel[] | undefined {
    return this.#models;
  }

  /** Whether it is one of ours, as far as is known. */
  get ours(): boolean {
    return this.#models !== undefined;
  }

  /** Settles when what was asked last is answered, or will not be. */
  get answered(): Promise<void> {
    return this.#answered;
  }

  /** Asks again. Nothing waits for this: an app that was installed opens where no server is, or one that is silent. */
  refresh(): Promise<void> {
    const mine = ++this.#asked;
    this.#answered = askModels().then((models) => {
      // Of two questions the later one's answer counts, whichever comes last.
      if (mine === this.#asked && JSON.stringify(models) !== JSON.stringify(this.#models)) {
        this.#models = models;
        this.changed.emit();
      }
    });
    return this.#answered;
  }

  /** Hands a text to the server, which writes it to its log. */
  async log(tag: string, text: string): Promise<void> {
    const answer = await fetch(address("api/log"), {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ tag, text }),
      signal: AbortSignal.timeout(PATIENCE),
    }).catch((error: unknown) => {
      throw refused(error instanceof Error ? error.message : "it cannot be reached");
    });
    if (!answer.ok) {
      const said = (await answer.json().catch(() => undefined)) as { error?: { message?: unknown } } | undefined;
      throw refused(typeof said?.error?.message === "string" ? said.error.message : `it answered ${answer.status}`);
    }
  }
}

function refused(reason: string): Error {
  return Object.assign(new Error(`the server's log did not take it: ${reason}`), { code: "report.refused", details: { reason } });
}

/** Beside the page, so that an app in a folder of a server asks in that folder. */
function address(path: string): string {
  return new URL(path, document.baseURI).href;
}

async function askModels(): Promise<ServerModel[] | undefined> {
  try {
    const signal = AbortSignal.timeout(PATIENCE);
    const answer = await fetch(address("api/models"), { headers: { accept: "application/json" }, cache: "no-store", signal });
    if (!answer.ok || !answer.headers.get("content-type")?.includes("json")) {
      return undefined;
    }
    const { models } = (await answer.json()) as { models?: unknown };
    return Array.isArray(models) ? models.flatMap(readModel) : undefined;
  } catch {
    return undefined;
  }
}

function readModel(value: unknown): ServerModel[] {
  const given = (value ?? {}) as Record<string, unknown>;
  if (typeof given.name !== "string" || typeof given.url !== "string") {
    return [];
  }
  const model: ServerModel = {
    name: given.name,
    url: new URL(given.url, document.baseURI).href,
    bytes: typeof given.bytes === "number" ? given.bytes : 0,
  };
  for (const name of ["sha256", "family", "parameters", "format"] as const) {
    const text = given[name];
    if (typeof text === "string" && text !== "") {
      model[name] = text;
    }
  }
  return [model];
}
