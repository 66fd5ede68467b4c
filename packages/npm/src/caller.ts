// The page's side: sends calls and waits for their answers.

import { fromSent, RullamaError, toSent } from "./errors.js";
import type { PageMedium, Shelf } from "./media/attachments.js";
import type { Answer, Name, Port, Protocol, Request } from "./protocol.js";
import type { CustomSource, EngineInfo } from "./types.js";

export interface CallOptions<N extends Name> {
  signal?: AbortSignal | undefined;
  onEvent?: (event: Protocol[N]["event"]) => void;
}

interface Pending {
  resolve: (result: never) => void;
  reject: (error: RullamaError) => void;
  onEvent: ((event: never) => void) | undefined;
  signal: AbortSignal | undefined;
}

export class Caller implements Shelf {
  readonly #port: Port<Request, Answer>;
  readonly #pending = new Map<number, Pending>();
  readonly #readers: CustomSource[] = [];
  readonly #media = new Map<number, PageMedium>();
  /** Is told when the model has moved to another backend. */
  onMoved: (info: EngineInfo) => void = () => {};
  #next = 1;
  #nextMedium = 1;
  #broken: RullamaError | undefined;

  constructor(port: Port<Request, Answer>) {
    this.#port = port;
    port.listen((answer) => this.#answered(answer));
  }

  /** Keeps a reader here, and gives the number by which the other side reads from it. */
  addReader(reader: CustomSource): number {
    return this.#readers.push(reader) - 1;
  }

  /** Keeps an image or a sound here, and gives the number by which the other side asks for it. */
  addMedium(medium: PageMedium): number {
    const number = this.#nextMedium++;
    this.#media.set(number, medium);
    return number;
  }

  /** The image or sound with a number. */
  medium(number: number): PageMedium | undefined {
    return this.#media.get(number);
  }

  /** Forgets images and sounds. */
  dropMedia(numbers: readonly number[]): void {
    numbers.forEach((number) => this.#media.delete(number));
  }

  /** Sends a call. Aborting the signal cancels it. */
  call<N extends Name>(
    name: N,
    params: Protocol[N]["params"],
    { signal, onEvent }: CallOptions<N> = {},
  ): Promise<Protocol[N]["result"]> {
    if (this.#broken) {
      return Promise.reject(this.#broken);
    }
    if (signal?.aborted) {
      return Promise.reject(RullamaError.cancelled(signal.reason));
    }
    const id = this.#next++;
    return new Promise<Protocol[N]["result"]>((resolve, reject) => {
      const abort = () => {
        this.#port.post({ kind: "cancel", id });
        // The caller need not wait until the other side has stopped.
        settle(() => reject(RullamaError.cancelled(signal?.reason)));
      };
      const settle = (how: () => void) => {
        signal?.removeEventListener("abort", abort);
        this.#pending.delete(id);
        how();
      };
      signal?.addEventListener("abort", abort);
      this.#pending.set(id, {
        resolve: (result) => settle(() => resolve(result)),
        reject: (error) => settle(() => reject(error)),
        onEvent: onEvent as Pending["onEvent"],
        signal,
      });
      this.#port.post({ kind: "call", id, name, params });
    });
  }

  /** Closes the connection. Pending calls and all later ones reject with `error`. */
  break(error: RullamaError): void {
    this.#broken ??= error;
    for (const { reject } of [...this.#pending.values()]) {
      reject(this.#broken);
    }
    this.#port.close();
  }

  #answered(answer: Answer): void {
    switch (answer.kind) {
      case "event":
        return this.#pending.get(answer.id)?.onEvent?.(answer.event as never);
      case "done":
        return this.#pending.get(answer.id)?.resolve(answer.result as never);
      case "failed":
        return this.#pending.get(answer.id)?.reject(fromSent(answer.error));
      case "read":
        return void this.#read(answer.id, answer.reader, answer.offset, answer.length);
      case "decode":
        return void this.#decode(answer.id, answer.call, answer.number);
      case "moved":
        return this.onMoved(answer.info);
      case "broken":
        return this.break(fromSent(answer.error));
    }
  }

  async #decode(id: number, call: number, number: number): Promise<void> {
    try {
      const medium = this.#media.get(number);
      const pending = this.#pending.get(call);
      if (!medium || !pending) {
        // Its call is over.
        throw RullamaError.cancelled();
      }
      const decoded = await medium.decode(pending.signal);
      const { buffer } = "rgba" in decoded ? decoded.rgba : decoded.samples;
      this.#port.post({ kind: "decoded", id, decoded }, [buffer]);
    } catch (thrown) {
      this.#port.post({ kind: "decoded", id, error: toSent(thrown) });
    }
  }

  async #read(id: number, reader: number, offset: number, length: number): Promise<void> {
    try {
      const bytes = await this.#readers[reader]?.read(offset, length);
      // The other side checks the type and length.
      this.#port.post({ kind: "bytes", id, bytes: bytes instanceof ArrayBuffer ? new Uint8Array(bytes) : bytes });
    } catch (thrown) {
      this.#port.post({ kind: "bytes", id, error: toSent(RullamaError.from(thrown, "source.other")) });
    }
  }
}
