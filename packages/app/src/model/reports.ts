// Errors to the server that brought the page, for whoever has the app on a phone, which has no console.
//
// Only where the user switched it on, or the address has `?report`, and only if the server is one of ours. What a conversation
// says is never part of it: a code, what the engine said of it, numbers, and which browser it was.

import type { ChatController } from "../chat/controller";
import type { Preferences } from "../state/preferences";
import type { ModelHost } from "./host";
import type { Server } from "./server";

/** The most reports of one page; a fault that repeats itself must not fill the log. */
const MOST = 50;

/** Characters of one report. */
const LONGEST = 4000;

interface Parts {
  server: Server;
  preferences: Preferences;
  host: ModelHost;
  chat: ChatController;
}

export function reportErrors({ server, preferences, host, chat }: Parts): void {
  if (new URLSearchParams(location.search).has("report")) {
    preferences.change({ report: true });
  }
  const reporter = new Reporter(server, () => preferences.settings.report);
  addEventListener("error", ({ error, message, filename, lineno }) => reporter.tell("error", error ?? { message: `${message} (${filename}:${lineno})` }));
  addEventListener("unhandledrejection", ({ reason }) => reporter.tell("error", reason));
  host.changed.on(() => {
    const { state } = host;
    const failure = state.kind === "failed" ? state : state.kind === "ready" ? state.failure : undefined;
    if (failure) {
      reporter.tell("load", failure.error);
    }
  });
  chat.finished.on(({ state, error }) => state === "failed" && reporter.tell("reply", error));
}

export class Reporter {
  readonly #server: Pick<Server, "ours" | "answered" | "log">;
  readonly #wanted: () => boolean;
  #sent = 0;
  #last = "";

  constructor(server: Pick<Server, "ours" | "answered" | "log">, wanted: () => boolean) {
    this.#server = server;
    this.#wanted = wanted;
  }

  /** Reports an error, if that is wanted. Fails silently: there is nobody left to tell. */
  tell(tag: string, thrown: unknown): void {
    const text = describe(thrown);
    // A loading that failed fails the reply that waited for it as well.
    if (!this.#wanted() || text === this.#last || this.#sent >= MOST) {
      return;
    }
    this.#last = text;
    this.#sent += 1;
    // An error while the app starts is older than the server's first answer.
    void this.#server.answered.then(() => (this.#server.ours ? this.#server.log(tag, text) : undefined)).catch(() => {});
  }
}

function describe(thrown: unknown): string {
  const { code, message, details, stack } = (thrown ?? {}) as Record<string, unknown>;
  const facts = Object.entries((details ?? {}) as object).filter(([, value]) => typeof value === "number" || typeof value === "string");
  // Where a stack begins with the message, that is enough of it.
  const place = code === undefined && typeof stack === "string" ? `\n${stack}` : "";
  const told = `${code === undefined ? "" : `${String(code)}: `}${String(message ?? thrown)}`;
  return `${told}${facts.length > 0 ? `\n${JSON.stringify(Object.fromEntries(facts))}` : ""}${place}\n${navigator.userAgent}`.slice(0, LONGEST);
}
