// Everything that happens in a chat: messages are sent or queued, answers are written, stopped, continued and regenerated, and all
// of it is saved.
//
// Conversations and messages are plain objects that are changed in place. The getters read signals that change with them, so
// components that use a getter are updated.

import { effect, signal, untracked } from "@preact/signals";
import type { ChatOptions, EncodeProgress, Engine, ImageBudget, Reply } from "rullama";
import type { ModelHost } from "../model/host";
import type { Preferences } from "../state/preferences";
import type { Settings } from "../state/settings";
import type { Attachment, Unsent } from "./attachments";
import { continuation, continuationRequest, type Continuation } from "./continuation";
import type { Drafts } from "./drafts";
import type { Library } from "./library";
import { mediaOf, mediaTokens, textOnly, withMedia } from "./media";
import { promptOf, type PromptMessage } from "./prompt";
import { MessageQueue, takeUnsent } from "./queue";
import { budgetFor } from "./soft-tokens";
import { add, children, find, newConversation, newId, path, removeLeaf, show, type ChatMessage, type Conversation, type Trimmed } from "./tree";
import { measureWith, planTrim, summaryPrompt, summaryTokens, type Measure } from "./trim";

/** Milliseconds between two saves of an answer that is being written. */
const SAVE_EVERY = 1500;

/** Milliseconds of an answer before its speed means something. */
const MEASURABLE = 300;

/** The code of the error if an answer is so long that it can only be continued with a larger context. */
const ANSWER_FILLS = "context.answer";

/** An answer that is being written. */
export interface Writing {
  conversation: Conversation;
  message: ChatMessage;
  /** Tokens so far, thoughts included. */
  tokens: number;
  /** Tokens per second; undefined at the beginning. */
  rate?: number;
  /** How far the images and sounds are read, while they are. */
  encoding?: EncodeProgress | undefined;
}

interface Running extends Writing {
  controller: AbortController;
  done: Promise<void>;
}

export class ChatController {
  readonly queue = new MessageQueue();
  readonly drafts: Drafts;
  readonly #library: Library;
  readonly #host: ModelHost;
  readonly #preferences: Preferences;
  readonly #current = signal<Conversation>(undefined as unknown as Conversation);
  /** Changes when the shown conversation or one of its messages changes, except for the growth of an answer. */
  readonly #revision = signal(0);
  readonly #growth = signal(0);
  readonly #writing = signal<Running | undefined>(undefined);
  readonly #finished = signal<{ message: ChatMessage } | undefined>(undefined);
  readonly #unsaved = signal<{ reason: unknown } | undefined>(undefined);
  /** Actions that stopped a reply to start another one. Until they have, no queued message is sent. */
  #starting = 0;

  constructor(library: Library, host: ModelHost, preferences: Preferences, drafts: Drafts) {
    this.#library = library;
    this.#host = host;
    this.#preferences = preferences;
    this.drafts = drafts;
    this.#current.value = newConversation(Date.now(), preferences.settings.system);
    for (const { conversation, ...unsent } of takeUnsent().reverse()) {
      drafts.giveBack(library.get(conversation) ?? this.#current.peek(), unsent);
    }
    void library.attachments.sweep(drafts.attached, Date.now());
    effect(() => {
      const { replaced } = library;
      if (replaced) {
        untracked(() => this.#replaced(replaced.id));
      }
    });
    // A hidden page may be closed by the browser at any time.
    document.addEventListener("visibilitychange", () => {
      const writing = this.#writing.peek();
      if (document.visibilityState === "hidden" && writing) {
        void this.#save(writing.conversation);
      }
    });
  }

  /** The conversation that is shown. */
  get conversation(): Conversation {
    void this.#revision.value;
    return this.#current.value;
  }

  /** The answer that is being written, in any conversation. */
  get writing(): Writing | undefined {
    return this.#writing.value;
  }

  /** Changes with every token of the answer that is being written. */
  get growth(): number {
    return this.#growth.value;
  }

  /** The answer that ended last, in a new object each time. */
  get finished(): { message: ChatMessage } | undefined {
    return this.#finished.value;
  }

  /** The reason why a conversation could not be saved, as long as that is so. */
  get unsaved(): { reason: unknown } | undefined {
    return this.#unsaved.value;
  }

  /** Shows a conversation; without an id, a new one. */
  open(id?: string): void {
    const found = id === undefined ? undefined : this.#library.get(id);
    if (found && found === this.#current.peek()) {
      return;
    }
    this.#current.value = found ?? newConversation(Date.now(), this.#preferences.settings.system);
    this.#changed();
  }

  /** Sends a message; queues it while a reply is being written. */
  async send(text: string, attachments: readonly Attachment[] = []): Promise<void> {
    const conversation = this.#current.peek();
    if (this.#writing.peek()) {
      this.queue.add(conversation, text, attachments);
    } else {
      await this.#sendTo(conversation, { text, attachments });
    }
  }

  /** Sends a queued message without waiting any longer. */
  async sendQueued(id: string): Promise<void> {
    const message = this.queue.remove(id);
    if (message) {
      await this.#starts(() => this.#sendTo(message.conversation, message));
    }
  }

  /** Takes a queued message back into the draft of its chat. */
  unqueue(id: string): void {
    const message = this.queue.remove(id);
    if (message) {
      this.drafts.giveBack(message.conversation, message);
    }
  }

  /** Removes a queued message and what was attached to it. */
  dropQueued(id: string): void {
    const message = this.queue.remove(id);
    if (message) {
      void this.#free(message.attachments);
    }
  }

  /** Removes an image or a sound from the draft of the shown chat. */
  detach(attachment: Attachment): void {
    this.drafts.detach(this.#current.peek(), attachment.id);
    void this.#free([attachment]);
  }

  /** Asks another question in place of an earlier one, which stays as a branch. The attachments are the same unless others are given. */
  async edit(id: string, text: string, attachments?: readonly Attachment[]): Promise<void> {
    const conversation = this.#current.peek();
    const message = find(conversation, id);
    if (message) {
      await this.#starts(() => this.#ask(conversation, { text, attachments: attachments ?? message.attachments ?? [] }, message.parent));
    }
  }

  /** Writes another answer to the same question. A failed answer without text is removed. */
  async regenerate(id: string): Promise<void> {
    await this.#answerAgain(this.#current.peek(), id);
  }

  /** Whether an answer can be continued: it was cut off or stopped, or waits for a larger context, and nothing follows it. */
  canContinue(message: ChatMessage): boolean {
    const cut = message.state === "complete" && message.cut === true;
    const full = message.state === "failed" && message.error?.code === ANSWER_FILLS;
    const ended = message.state === "stopped" || cut || full;
    return message.role === "assistant" && isBegun(message) && ended && children(this.#current.peek(), message.id).length === 0;
  }

  /** Continues an answer that was cut off or stopped. */
  async continue(id: string): Promise<void> {
    const conversation = this.#current.peek();
    const message = find(conversation, id);
    if (message) {
      await this.#starts(() => this.#resume(conversation, message));
    }
  }

  /**
   * Leaves out the oldest messages, or lets the model summarise them, and then answers the question of a failed answer. The user may
   * open another chat in the meantime.
   */
  async makeRoom(id: string, how: "drop" | "summarise"): Promise<void> {
    const conversation = this.#current.peek();
    const message = find(conversation, id);
    const question = message?.parent;
    if (!message || !question) {
      return;
    }
    try {
      const engine = await this.#host.ready();
      // With text, the error came while the answer was being continued, so its text has to fit as well.
      const begun = isBegun(message);
      const measure = begun ? this.#measureContinued(engine, message) : this.#measure(engine);
      const plan = await planTrim(conversation, question, engine.info.context, measure);
      if (!plan) {
        throw begun
          ? Object.assign(new Error("the question and its answer are longer than the context"), { code: ANSWER_FILLS })
          : Object.assign(new Error("the message alone is longer than the context"), { code: "context.message" });
      }
      if (!this.#library.get(conversation.id)) {
        // The chat was deleted meanwhile.
        return;
      }
      const trimmed: Trimmed = how === "summarise" ? { ...plan, summary: "" } : plan;
      if (!begun) {
        return await this.#answerAgain(conversation, id, trimmed);
      }
      message.trimmed = trimmed;
      await this.#starts(() => this.#resume(conversation, message));
    } catch (thrown) {
      message.error = errorOf(thrown);
      this.#changed();
    }
  }

  show(id: string): void {
    const conversation = this.#current.peek();
    show(conversation, id);
    void this.#save(conversation);
    this.#changed();
  }

  async setSystem(text: string): Promise<void> {
    const conversation = this.#current.peek();
    conversation.system = text;
    if (conversation.messages.length > 0) {
      await this.#save(conversation);
    }
    this.#changed();
  }

  async rename(conversation: Conversation, title: string): Promise<void> {
    conversation.title = title;
    conversation.named = true;
    await this.#save(conversation);
    this.#changed();
  }

  async delete(id: string): Promise<void> {
    const unsent = [...this.queue.forget(id), ...this.drafts.forget(id)];
    if (this.#writing.peek()?.conversation.id === id) {
      await this.stop();
    }
    await this.#library.delete(id, this.#unsent);
    void this.#free(unsent);
    if (this.#current.peek().id === id) {
      this.open();
    }
  }

  /** Stops the answer that is being written. Its text so far stays. */
  async stop(): Promise<void> {
    const writing = this.#writing.peek();
    writing?.controller.abort();
    await writing?.done;
  }

  /** The keys of everything that is attached to drafts and queued messages. */
  get #unsent(): Set<string> {
    return new Set([...this.drafts.attached, ...this.queue.attached]);
  }

  /** Frees the content of attachments that nothing uses any more. */
  async #free(attachments: readonly Attachment[]): Promise<void> {
    const unsent = this.#unsent;
    const unused = attachments.map(({ id }) => id).filter((id) => !unsent.has(id) && !this.#library.attaches(id));
    if (unused.length > 0) {
      await this.#library.attachments.free(unused);
    }
  }

  #changed(): void {
    this.#revision.value += 1;
  }

  /** Stops the reply that is being written and starts another. */
  async #starts(work: () => Promise<void>): Promise<void> {
    this.#starting += 1;
    try {
      await this.stop();
    } finally {
      this.#starting -= 1;
    }
    await work();
  }

  async #sendTo(conversation: Conversation, unsent: Unsent): Promise<void> {
    await this.#ask(conversation, unsent, path(conversation).at(-1)?.id ?? null);
  }

  async #ask(conversation: Conversation, { text, attachments }: Unsent, parent: string | null): Promise<void> {
    const message: ChatMessage = { id: newId(), parent, role: "user", content: text, createdAt: Date.now(), state: "complete" };
    if (attachments.length > 0) {
      message.attachments = [...attachments];
    }
    add(conversation, message);
    this.#library.wrote(message.id);
    await this.#answer(conversation, message.id);
  }

  async #answerAgain(conversation: Conversation, id: string, trimmed?: Trimmed): Promise<void> {
    const message = find(conversation, id);
    if (!message || message.parent === null) {
      return;
    }
    const question = message.parent;
    await this.#starts(async () => {
      if (message.state === "failed" && message.content === "") {
        removeLeaf(conversation, id);
      }
      await this.#answer(conversation, question, trimmed);
    });
  }

  async #answer(conversation: Conversation, question: string, trimmed?: Trimmed): Promise<void> {
    const message: ChatMessage = { id: newId(), parent: question, role: "assistant", content: "", createdAt: Date.now(), state: "writing" };
    if (trimmed) {
      message.trimmed = trimmed;
    }
    add(conversation, message);
    await this.#run(conversation, message);
  }

  async #resume(conversation: Conversation, message: ChatMessage): Promise<void> {
    message.state = "writing";
    delete message.error;
    delete message.cut;
    await this.#run(conversation, message);
  }

  /** Writes an answer to its end and then sends the next queued message. */
  async #run(conversation: Conversation, message: ChatMessage): Promise<void> {
    this.#library.wrote(message.id);
    const controller = new AbortController();
    const release = this.#library.hold(conversation.id);
    const writing: Writing = { conversation, message, tokens: 0 };
    const done = this.#write(writing, controller.signal).finally(() => {
      release();
      this.#writing.value = undefined;
    });
    this.#writing.value = Object.assign(writing, { controller, done });
    this.#changed();
    void this.#save(conversation);
    await done;
    await this.#save(conversation);
    this.#changed();
    this.#finished.value = { message };
    // After an error the messages wait for the user: the next one would probably fail as well.
    if (message.state !== "failed" && this.#starting === 0 && !this.#writing.peek()) {
      const next = this.queue.next();
      if (next) {
        await this.#sendTo(next.conversation, next);
      }
    }
  }

  /** Writes an answer, or the rest of one. Never rejects; the message's state tells how it ended. */
  async #write(writing: Writing, signal: AbortSignal): Promise<void> {
    const { conversation, message } = writing;
    const before = message.speed;
    let saved = performance.now();
    let first: number | undefined;
    let asked = saved;
    try {
      const engine = await unlessAborted(this.#host.ready(), signal);
      const { state } = this.#host;
      // The name that the page shows is the one that the user knows.
      message.model = state.kind === "ready" ? state.label : engine.info.name;
      await this.#summarise(engine, conversation, message, signal);
      asked = performance.now();
      const { reply, thoughtEnd } = await this.#start(engine, writing, signal);
      let inThought = thoughtEnd !== undefined;
      for await (const delta of reply) {
        const now = performance.now();
        first ??= now;
        writing.encoding = undefined;
        inThought &&= !delta.ids.includes(thoughtEnd as number);
        const thought = (delta.thought ?? "") + (inThought ? delta.text : "");
        message.content += inThought ? "" : delta.text;
        if (thought !== "") {
          message.thought = (message.thought ?? "") + thought;
        }
        writing.tokens += delta.ids.length;
        if (now - first > MEASURABLE) {
          writing.rate = ((writing.tokens - 1) / (now - first)) * 1000;
        }
        this.#growth.value += 1;
        if (now - saved > SAVE_EVERY) {
          saved = now;
          void this.#save(conversation);
        }
      }
      const { usage, timings, finishReason } = await reply.result();
      // A reply without text has no delta: its only token ended it.
      message.speed = sum(before, { ...usage, promptMs: (first ?? performance.now()) - asked, generateMs: timings.generateMs });
      if (finishReason === "length") {
        message.cut = true;
      }
      message.state = "complete";
      this.#host.noteReply();
    } catch (thrown) {
      const stopped = signal.aborted || (thrown as { code?: unknown }).code === "cancelled";
      message.state = stopped ? "stopped" : "failed";
      if (!stopped) {
        message.error = errorOf(thrown);
        this.#host.noteReply(thrown as { code?: unknown });
      }
      if (first !== undefined) {
        const speed = { promptTokens: 0, reusedTokens: 0, generatedTokens: writing.tokens, promptMs: first - asked, generateMs: performance.now() - first };
        message.speed = sum(before, speed);
      }
    }
    message.content = message.content.trim();
  }

  /** Starts a new answer, or continues one that has text already. */
  async #start(engine: Engine, writing: Writing, signal: AbortSignal): Promise<{ reply: Reply; thoughtEnd?: number | undefined }> {
    const { conversation, message } = writing;
    const prompt = promptOf(conversation, message.parent ?? undefined, message.trimmed);
    const { think, ...options } = replyOptions(this.#preferences.settings, engine, signal);
    if (mediaOf(prompt).length > 0) {
      return { reply: await this.#startWithMedia(engine, writing, prompt, { ...options, think }) };
    }
    if (!isBegun(message)) {
      return { reply: engine.chat(prompt, { ...options, think }) };
    }
    const { ids, thoughtEnd } = await this.#continuation(engine, prompt, message);
    return { reply: engine.generate(ids, options), thoughtEnd };
  }

  /** The same for a prompt with images or sounds. */
  async #startWithMedia(engine: Engine, writing: Writing, prompt: PromptMessage[], options: ChatOptions): Promise<Reply> {
    const { message } = writing;
    const { content } = message;
    const request = content === "" ? [] : continuationRequest(content);
    const messages = [...(await withMedia(prompt, this.#library.attachments)), ...request];
    const onEncode = (progress: EncodeProgress) => {
      writing.encoding = progress;
      this.#growth.value += 1;
    };
    if (content === "") {
      // A thought without an answer can't be continued, so the model thinks again.
      delete message.thought;
    } else {
      message.content += " ";
    }
    return engine.chat(messages, { ...options, imageBudget: this.#imageBudget(engine), onEncode, ...(content === "" ? {} : { think: false }) });
  }

  #continuation(engine: Engine, prompt: PromptMessage[], message: ChatMessage): Promise<Continuation> {
    return continuation(engine, textOnly(prompt), message, this.#preferences.settings.think || Boolean(message.thought));
  }

  #measure(engine: Engine): Measure {
    return measureWith(engine, this.#imageBudget(engine));
  }

  #imageBudget({ info }: Engine): ImageBudget {
    return budgetFor(info, this.#preferences.settings.imageBudget);
  }

  /** Counts the tokens of a prompt together with the part of the answer that exists. */
  #measureContinued(engine: Engine, message: ChatMessage): Measure {
    const budget = this.#imageBudget(engine);
    return async (prompt) => (await this.#continuation(engine, prompt, message)).ids.length + mediaTokens(prompt, budget);
  }

  /** Writes the summary of the messages that are left out, if one is wanted. */
  async #summarise(engine: Engine, conversation: Conversation, message: ChatMessage, signal: AbortSignal): Promise<void> {
    const { trimmed, parent } = message;
    if (!trimmed || trimmed.summary !== "" || parent === null) {
      return;
    }
    const { context } = engine.info;
    const prompt = await summaryPrompt(conversation, parent, trimmed, context, this.#measure(engine));
    const { text } = await engine.chat(prompt, { think: false, temperature: 0, maxTokens: summaryTokens(context), signal }).result();
    message.trimmed = { ...trimmed, summary: text.trim() };
    this.#growth.value += 1;
  }

  async #save(conversation: Conversation): Promise<void> {
    conversation.updatedAt = Date.now();
    try {
      await this.#library.save(conversation);
      this.#unsaved.value = undefined;
    } catch (reason) {
      // The page still has it, and the next save tries again.
      this.#unsaved.value ??= { reason };
    }
  }

  /** Shows the changes that another tab made to the shown conversation. */
  #replaced(id: string): void {
    if (id !== this.#current.peek().id) {
      return;
    }
    if (this.#library.get(id)) {
      this.#changed();
    } else {
      this.open();
    }
  }
}

/** Whether a part of an answer exists, be it only a part of its thought. */
function isBegun({ content, thought }: ChatMessage): boolean {
  return content !== "" || Boolean(thought);
}

function replyOptions(settings: Readonly<Settings>, engine: Engine, signal: AbortSignal): ChatOptions & { think: boolean } {
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

/** The speed of an answer that was written in several parts. The time to the first token is that of the first part. */
function sum(before: ChatMessage["speed"], now: NonNullable<ChatMessage["speed"]>): NonNullable<ChatMessage["speed"]> {
  if (!before) {
    return now;
  }
  return {
    ...before,
    generatedTokens: before.generatedTokens + now.generatedTokens,
    generateMs: before.generateMs + now.generateMs,
  };
}

/** The part of an error that is stored with a message. */
function errorOf(thrown: unknown): NonNullable<ChatMessage["error"]> {
  const error = thrown as { code?: unknown; message?: unknown; details?: Record<string, unknown> };
  const details = Object.entries(error.details ?? {}).filter(([, value]) => typeof value === "number" || typeof value === "string");
  return { code: String(error.code ?? "unknown"), message: String(error.message ?? thrown), details: Object.fromEntries(details) };
}

/** Waits for a promise that can't be cancelled itself, but no longer than the signal allows. */
function unlessAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const abort = () => reject(Object.assign(new Error("it was stopped"), { code: "cancelled" }));
    signal.addEventListener("abort", abort, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener("abort", abort));
  });
}
