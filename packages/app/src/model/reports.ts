// Error reports to the server that the page came from: a phone has no console that its user could read.
//
// Reports are sent only after the user has agreed, in the settings or when a link with `?report` asked, and only to `rullama serve`.
// A report never contains the content of a chat: it has a code, the engine's message, numbers, and the browser's name.

import { effect } from "@preact/signals";
import type { ChatController } from "../chat/controller";
import type { Preferences } from "../state/preferences";
import type { ModelHost } from "./host";
import { askToReport } from "./report-question";
import type { Server } from "./server";

/** The most reports per page, so that an error that repeats does not fill the log. */
const MOST = 50;

/** The most characters of a report. */
const LONGEST = 4000;

interface Parts {
  server: Server;
  preferences: Preferences;
  host: ModelHost;
  chat: ChatController;
}

/** Asks the user; resolves to true if they agree. */
type Question = () => Promise<boolean>;

/** Reports errors from now on, whenever the settings allow it. A link with `?report` makes the app ask the user first. */
export function reportErrors({ server, preferences, host, chat }: Parts, ask: Question = askToReport): void {
  void offerReports(server, preferences, ask);
  const reporter = new Reporter(server, () => preferences.settings.report);
  addEventListener("error", ({ error, message, filename, lineno }) => reporter.tell("error", error ?? { message: `${message} (${filename}:${lineno})` }));
  addEventListener("unhandledrejection", ({ reason }) => reporter.tell("error", reason));
  effect(() => {
    const failure = host.state.kind === "failed" ? host.state : host.failure;
    if (failure) {
      reporter.tell("load", failure.error);
    }
  });
  effect(() => {
    const message = chat.finished?.message;
    if (message?.state === "failed") {
      reporter.tell("reply", message.error);
    }
  });
}

/** If the address has `?report`, asks whether errors may be reported. Nothing is sent, stored or kept before the answer. */
async function offerReports(server: Server, preferences: Preferences, ask: Question): Promise<void> {
  if (!takeParameters().has("report")) {
    return;
  }
  await server.answered;
  if (server.ours && !preferences.settings.report && (await ask())) {
    preferences.change({ report: true });
  }
}

/**
 * Removes `report` and `token` from the address, and gives all its parameters as they were. The link asks about reports once: a reload
 * or a bookmark must not ask again. The server answered the token with a cookie, and a secret must not stay in the history, in
 * screenshots or in an address that the user shares.
 */
function takeParameters(): URLSearchParams {
  const address = new URL(location.href);
  const given = new URLSearchParams(address.search);
  if (given.has("report") || given.has("token")) {
    address.searchParams.delete("report");
    address.searchParams.delete("token");
    history.replaceState(history.state, "", address);
  }
  return given;
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

  /** Reports an error, if the user allows it. Failures to report are ignored. */
  tell(tag: string, thrown: unknown): void {
    const text = describe(thrown);
    // A failed load also fails the reply that waited for it.
    if (!this.#wanted() || text === this.#last || this.#sent >= MOST) {
      return;
    }
    this.#last = text;
    this.#sent += 1;
    // An error during the start can be older than the server's first answer.
    void this.#server.answered.then(() => (this.#server.ours ? this.#server.log(tag, text) : undefined)).catch(() => {});
  }
}

function describe(thrown: unknown): string {
  const { code, message, details, stack } = (thrown ?? {}) as Record<string, unknown>;
  const facts = Object.entries((details ?? {}) as object).filter(([, value]) => typeof value === "number" || typeof value === "string");
  const trace = code === undefined && typeof stack === "string" ? `\n${stack}` : "";
  const summary = `${code === undefined ? "" : `${String(code)}: `}${String(message ?? thrown)}`;
  return `${summary}${facts.length > 0 ? `\n${JSON.stringify(Object.fromEntries(facts))}` : ""}${trace}\n${navigator.userAgent}`.slice(0, LONGEST);
}
