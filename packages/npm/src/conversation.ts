// A conversation on the engine's side: a session of the model that is loaded, and of the next one if the model moves to the CPU.

import type { Cancel, Loaded } from "./loading.js";
import type { Encoded } from "./media/encode.js";
import { namesIn, renamed } from "./media/names.js";
import type { SentMedium } from "./protocol.js";
import type { WebSession } from "./wasm/rullama.js";

/** Encodes images and sounds with the conversation's model. */
export type Encode = (media: readonly SentMedium[]) => Promise<Encoded>;

/** What a reply needs besides its messages. */
export interface Asked {
  media: readonly SentMedium[];
  options: string;
  encode: Encode;
  onEvent: (json: string) => void;
  cancel: Cancel;
}

export class Conversation {
  /** The last of the calls that wait for their turn. */
  turn: Promise<unknown> = Promise.resolve();
  /** Cancels its replies. */
  readonly closing = new AbortController();
  #on: Loaded;
  #session: WebSession;
  /** The images and sounds of the messages of {@link send}, by number. */
  readonly #media = new Map<number, SentMedium>();
  /** Their numbers, by the names of their attachments in the session. */
  readonly #numbers = new Map<string, number>();
  /** Messages that the session gets before the next one: their images and sounds have to be encoded again first. */
  #unrestored: string | undefined;

  constructor(on: Loaded) {
    this.#on = on;
    this.#session = on.engine.session();
  }

  /** The model that it belongs to. */
  get on(): Loaded {
    return this.#on;
  }

  get session(): WebSession {
    return this.#session;
  }

  /** The messages of {@link send} and the replies to them, as JSON, with numbers for images and sounds. */
  messages(): string {
    if (this.#unrestored !== undefined) {
      return this.#unrestored;
    }
    const messages = this.#session.messages();
    return this.#numbers.size === 0 ? messages : renamed(messages, (name) => String(this.#numbers.get(name) ?? name));
  }

  clear(): void {
    this.#session.clear();
    this.#media.clear();
    this.#numbers.clear();
    this.#unrestored = undefined;
  }

  free(): void {
    this.#session.free();
  }

  /** Makes it a conversation of another model, with these messages. */
  move(to: Loaded, messages: string): void {
    this.#session.free();
    this.#on = to;
    this.#session = to.engine.session();
    this.#numbers.clear();
    if (this.#media.size > 0 && namesIn(messages).length > 0) {
      this.#unrestored = messages;
    } else if (messages !== "[]") {
      this.#session.restore(messages);
    }
  }

  /** Answers a whole conversation. */
  async chat(messages: string, { media, options, encode, onEvent, cancel }: Asked): Promise<string> {
    if (media.length === 0) {
      return this.#session.chat(messages, [], options, onEvent, cancel);
    }
    const { attachments, names } = await encode(media);
    return this.#session.chat(named(messages, names), attachments, options, onEvent, cancel);
  }

  /** Adds a message and answers it. */
  async send(message: string, { media, options, encode, onEvent, cancel }: Asked): Promise<string> {
    const earlier = this.#unrestored === undefined ? [] : namesIn(this.#unrestored).flatMap((name) => this.#media.get(Number(name)) ?? []);
    if (earlier.length + media.length === 0) {
      return this.#session.send(message, [], options, onEvent, cancel);
    }
    const { attachments, names } = await encode([...earlier, ...media]);
    media.forEach((medium) => this.#media.set(medium.number, medium));
    names.forEach((name, number) => this.#numbers.set(name, number));
    if (this.#unrestored !== undefined) {
      this.#session.restore(named(this.#unrestored, names));
      this.#unrestored = undefined;
    }
    return this.#session.send(named(message, names), attachments, options, onEvent, cancel);
  }
}

/** Messages, or one message, with the names of attachments instead of the numbers of media. */
function named(json: string, names: ReadonlyMap<number, string>): string {
  return renamed(json, (number) => names.get(Number(number)) ?? number);
}
