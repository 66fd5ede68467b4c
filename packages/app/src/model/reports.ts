// Error reports to the server that the page came from, because a phone has no console.
//
// They are sent only after the user has agreed, in the settings or when a link with `?report` asked, and only if the server is one of
// ours. A report never contains what a conversation says: it has a code, the engine's message, numbers, and the browser's name.

import type { ChatController } from "../chat/controller";
import type { Preferences } from "../state/preferences";
import { button } from "../ui/button";
import { openDialog } from "../ui/dialog";
import { make } from "../ui/dom";
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

/** Asks the user; true if they agree. */
type Question = () => Promise<boolean>;

/** Reports errors from now on, whenever the settings allow it. A link with `?report` makes the app ask for that first. */
export function reportErrors({ server, preferences, host, chat }: Parts, ask: Question = askToReport): void {
  void offerReports(server, preferences, ask);
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

/** Where the address has `?report`, asks whether errors may be reported. Before the answer nothing is sent, stored or kept for later. */
async function offerReports(server: Server, preferences: Preferences, ask: Question): Promise<void> {
  const address = new URL(location.href);
  if (!address.searchParams.has("report")) {
    return;
  }
  // A link asks once: neither a reload nor a bookmark asks again.
  address.searchParams.delete("report");
  history.replaceState(history.state, "", address);
  await server.answered;
  if (server.ours && !preferences.settings.report && (await ask())) {
    preferences.change({ report: true });
  }
}

async function askToReport(): Promise<boolean> {
  const fact = (title: string, text: string) => [make("dt", {}, title), make("dd", {}, text)];
  const { result } = openDialog(
    "Send error reports to this server?",
    (close) => [
      make(
        "div",
        { class: "dialog-text" },
        make("p", {}, "The link that you opened asks for this. You decide."),
        make(
          "dl",
          { class: "facts-list" },
          ...fact("What is sent", "What went wrong: an error code and message, which may name the model's file or address, and your browser's name. Never what is said in a chat."),
          ...fact("To whom", `${location.host}, the server that this page came from. It goes into the server's log.`),
          ...fact("Until when", "Until you switch it off: Settings, “Report errors to this server”."),
        ),
      ),
      make(
        "div",
        { class: "dialog-actions" },
        button("Not now", () => close("")),
        button("Allow", () => close("yes"), { kind: "primary" }),
      ),
    ],
    { class: "report-question" },
  );
  return (await result) === "yes";
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
