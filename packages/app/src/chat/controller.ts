// What happens in a chat: questions are asked, answers are written, stopped, tried again; and all of it is kept.

import type { ChatOptions, Engine, Message } from "rullama";
import type { ModelHost } from "../model/host";
import { Emitter } from "../state/emitter";
import type { Preferences } from "../state/preferences";
import type { Settings } from "../state/settings";
import type { Library } from "./library";
import { add, before, find, newConversation, newId, path, removeLeaf, show, type ChatMessage, type Conversation } from "./tree";

/** Milliseconds between two savings of an answer that is being written. */
const SAVE_EVERY = 1500;

/** An answer on its way. */
export interface Writing {
  conversation: Conversation;
  message: ChatMessage;
  /** Tokens so far, thoughts included. */
  tokens: number;
  /** Tokens a second so far; undefined before there is anything to measure. */
  rate?: number;
}

export class ChatController {
  /** Another conversation is shown, or the one that is shown has other messages. */
  readonly changed = new Emitter();
  /** The answer that is being written grew. */
  readonly grew = new Emitter<Writing>();
  /** An answer ended, well or not. */
  readonly finished = new Emitter<ChatMessage>();
  /** A conversation could not be kept, with the reason; or, without one, can be again. */
  readonly unsaved = new Emitter<{ reason: unknown } | undefined>();
  readonly #library: Library;
  readonly #host: ModelHost;
  readonly #preferences: Preferences;
  #current: Conversation;
  #failed = false;
  #writing: (Writing & { controller: AbortController; done: Promise<void> }) | undefined;

  constructor(library: Library, host: ModelHost, preferences: Preferences) {
    this.#library = library;
    this.#host = host;
    this.#preferences = preferences;
    this.#current = newConversation(Date.now(), preferences.settings.system);
    library.replaced.on((id) => this.#replaced(id));
    // A page that is hidden may be ended without another word.
    document.addEventListener("visibilitychange", () => {
      if (document.visibilityState === "hidden" && this.#writing) {
        void this.#save(this.#writing.conversation);
      }
    });
  }

  get conversation(): Conversation {
    return this.#current;
  }

  get writing(): Writing | undefined {
    return this.#writing;
  }

  /** Shows a conversation; without an id, a new one. */
  open(id?: string): void {
    const found = id === undefined ? undefined : this.#library.get(id);
    if (found && found === this.#current) {
      return;
    }
    this.#current = found ?? newConversation(Date.now(), this.#preferences.settings.system);
    this.changed.emit();
  }

  async send(text: string): Promise<void> {
    const conversation = this.#current;
    const last = path(conversation).at(-1);
    await this.#ask(conversation, text, last?.id ?? null);
  }

  /** Asks something else in the place of a question; the old one stays beside it. */
  async edit(id: string, text: string): Promise<void> {
    const conversation = this.#current;
    const message = find(conversation, id);
    if (message) {
      await this.#ask(conversation, text, message.parent);
    }
  }

  /** Another answer to the same question. One that failed without a word makes room for it. */
  async regenerate(id: string): Promise<void> {
    const conversation = this.#current;
    const message = find(conversation, id);
    if (!message || message.parent === null) {
      return;
    }
    const question = message.parent;
    await this.stop();
    if (message.state === "failed" && message.content === "") {
      removeLeaf(conversation, id);
    }
    await this.#answer(conversation, question);
  }

  /** Answers a question that has no answer yet. */
  async answer(question: string): Promise<void> {
    await this.#answer(this.#current, question);
  }

  show(id: string): void {
    show(this.#current, id);
    void this.#save(this.#current);
    this.changed.emit();
  }

  async setSystem(text: string): Promise<void> {
    this.#current.system = text;
    if (this.#current.messages.length > 0) {
      await this.#save(this.#current);
    }
    this.changed.emit();
  }

  async rename(conversation: Conversation, title: string): Promise<void> {
    conversation.title = title;
    conversation.named = true;
    await this.#save(conversation);
    this.changed.emit();
  }

  async delete(id: string): Promise<void> {
    if (this.#writing?.conversation.id === id) {
      await this.stop();
    }
    await this.#library.delete(id);
    if (this.#current.id === id) {
      this.open();
    }
  }

  /** Ends the answer that is being written. What it said stays. */
  async stop(): Promise<void> {
    const writing = this.#writing;
    writing?.controller.abort();
    await writing?.done;
  }

  /** How a conversation looks to the model: what it is told to be, then all that was said up to a message. */
  prompt(conversation: Conversation, upTo?: string): Message[] {
    const last = upTo === undefined ? undefined : find(conversation, upTo);
    const said = last ? [...before(conversation, last.id), last] : path(conversation);
    const messages: Message[] = said
      .filter(({ role, content }) => role === "user" || content !== "")
      .map(({ role, content }) => ({ role, content }));
    const system = conversation.system.trim();
    return system === "" ? messages : [{ role: "system", content: system }, ...messages];
  }

  async #ask(conversation: Conversation, text: string, parent: string | null): Promise<void> {
    await this.stop();
    const message: ChatMessage = { id: newId(), parent, role: "user", content: text, createdAt: Date.now(), state: "complete" };
    add(conversation, message);
    this.#library.wrote(message.id);
    await this.#answer(conversation, message.id);
  }

  async #answer(conversation: Conversation, question: string): Promise<void> {
    await this.stop();
    const message: ChatMessage = { id: newId(), parent: question, role: "assistant", content: "", createdAt: Date.now(), state: "writing" };
    add(conversation, message);
    this.#library.wrote(message.id);
    const controller = new AbortController();
    const release = this.#library.hold(conversation.id);
    const writing: Writing = { conversation, message, tokens: 0 };
    const done = this.#write(writing, question, controller.signal).finally(() => {
      release();
      this.#writing = undefined;
    });
    this.#writing = Object.assign(writing, { controller, done });
    this.changed.emit();
    void this.#save(conversation);
    await done;
    await this.#save(conversation);
    this.changed.emit();
    this.finished.emit(message);
  }

  /** Writes an answer. Ends always; how, the message tells. */
  async #write(writing: Writing, question: string, signal: AbortSignal): Promise<void> {
    const { conversation, message } = writing;
    let saved = performance.now();
    let first: number | undefined;
    let asked = performance.now();
    try {
      const engine = await unlessAborted(this.#host.ready(), signal);
      asked = performance.now();
      // As the page calls it, which is what people know it by.
      message.model = this.#host.state.kind === "ready" ? this.#host.state.label : engine.info.name;
      const reply = engine.chat(this.prompt(conversation, question), options(this.#preferences.settings, engine, signal));
      for await (const delta of reply) {
        const now = performance.now();
        first ??= now;
        message.content += delta.text;
        if (delta.thought) {
          message.thought = (message.thought ?? "") + delta.thought;
        }
        writing.tokens += delta.ids.length;
        writing.rate = now - first > 300 ? ((writing.tokens - 1) / (now - first)) * 1000 : undefined;
        this.grew.emit(writing);
        if (now - saved > SAVE_EVERY) {
          saved = now;
          void this.#save(conversation);
        }
      }
      const { usage, timings, finishReason } = await reply.result();
      // What people wait for is the first word, not the end of the prompt.
      message.speed = { ...usage, promptMs: (first ?? asked) - asked, generateMs: timings.generateMs };
      message.cut = finishReason === "length" || undefined;
      message.state = "complete";
      this.#host.noteReply();
    } catch (thrown) {
      const error = thrown as { code?: unknown; message?: unknown; details?: Record<string, unknown> };
      const stopped = signal.aborted || error.code === "cancelled";
      message.state = stopped ? "stopped" : "failed";
      if (!stopped) {
        message.error = { code: String(error.code ?? "unknown"), message: String(error.message ?? thrown), details: plain(error.details) };
        this.#host.noteReply(error);
      }
      if (first !== undefined) {
        const generateMs = performance.now() - first;
        message.speed = { promptTokens: 0, reusedTokens: 0, generatedTokens: writing.tokens, promptMs: first - asked, generateMs };
      }
    }
    message.content = message.content.trim();
  }

  async #save(conversation: Conversation): Promise<void> {
    conversation.updatedAt = Date.now();
    try {
      await this.#library.save(conversation);
      if (this.#failed) {
        this.#failed = false;
        this.unsaved.emit(undefined);
      }
    } catch (error) {
      // Out of room or taken away: the page keeps it, and the next saving tries again.
      if (!this.#failed) {
        this.#failed = true;
        this.unsaved.emit({ reason: error });
      }
    }
  }

  /** Shows what another tab made of the conversation that is shown here. */
  #replaced(id: string): void {
    if (id !== this.#current.id) {
      return;
    }
    if (this.#library.get(id)) {
      this.changed.emit();
    } else {
      this.open();
    }
  }
}

function options(settings: Readonly<Settings>, engine: Engine, signal: AbortSignal): ChatOptions {
  const { temperature, topK, topP, minP, repeatPenalty, seed, maxTokens, think } = settings;
  return {
    temperature,
    topK,
    topP,
    minP,
    repeatPenalty,
    think,
    signal,
    ...(seed === null ? {} : { seed }),
    ...(maxTokens === null ? {} : { maxTokens: Math.min(maxTokens, engine.info.context) }),
  };
}

/** What can be kept with a message: numbers and texts. */
function plain(details: Record<string, unknown> | undefined): Record<string, unknown> {
  const simple = Object.entries(details ?? {}).filter(([, value]) => typeof value === "number" || typeof value === "string");
  return Object.fromEntries(simple);
}

/** Waits for something that cannot be stopped itself, but not longer than the signal allows. */
function unlessAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const abort = () => reject(Object.assign(new Error("it was stopped"), { code: "cancelled" }));
    signal.addEventListener("abort", abort, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener("abort", abort));
  });
}
