// The server that the page came from. If it is `rullama serve`, it offers models and a log for measurements and errors.

import { signal } from "@preact/signals";

export interface ServerModel {
  name: string;
  bytes: number;
  url: string;
  sha256?: string;
  family?: string;
  parameters?: string;
  format?: string;
}

/** Milliseconds to wait for an answer. */
const PATIENCE = 3000;

/** The most bytes that the server's log accepts in one text. */
export const LOG_BYTES = 16 * 1024;

export class Server {
  readonly #models = signal<readonly ServerModel[] | undefined>(undefined);
  #asked = 0;
  #answered: Promise<void> = Promise.resolve();

  /** The models on the server; undefined if it is an ordinary server or has not answered. */
  get models(): readonly ServerModel[] | undefined {
    return this.#models.value;
  }

  /** Whether the server is `rullama serve`, as far as is known. */
  get ours(): boolean {
    return this.#models.value !== undefined;
  }

  /** Resolves when the latest request is answered or has failed. */
  get answered(): Promise<void> {
    return this.#answered;
  }

  /** Asks the server for its models. The app does not wait for this: it must also open without a server. */
  refresh(): Promise<void> {
    const mine = ++this.#asked;
    this.#answered = askModels().then((models): Promise<void> | undefined => {
      // Only the answer to the latest request counts, and those who wait for an older one wait for it.
      if (mine !== this.#asked) {
        return this.#answered;
      }
      if (JSON.stringify(models) !== JSON.stringify(this.#models.peek())) {
        this.#models.value = models;
      }
      return undefined;
    });
    return this.#answered;
  }

  /** Sends a text to the server's log. */
  async log(tag: string, text: string): Promise<void> {
    const answer = await fetch(address("api/log"), {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ tag, text }),
      signal: AbortSignal.timeout(PATIENCE),
    }).catch((error: unknown) => {
      throw refused(error instanceof Error ? error.message : "the server cannot be reached");
    });
    if (!answer.ok) {
      const said = (await answer.json().catch(() => undefined)) as { error?: { message?: unknown } } | undefined;
      throw refused(typeof said?.error?.message === "string" ? said.error.message : `it answered ${answer.status}`);
    }
  }
}

function refused(reason: string): Error {
  return Object.assign(new Error(`the server's log refused the text: ${reason}`), { code: "report.refused", details: { reason } });
}

/** Relative to the page, so that an app in a folder asks in that folder. */
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
