// An engine without a model, for the examples: it loads when the test says so and repeats the question.

export class RullamaError extends Error {
  code = "";
}

interface Loading {
  model: string;
  options: { store?: boolean; projector?: string; worker?: unknown; signal?: AbortSignal; onProgress(event: { overall: number }): void };
  finish(): void;
  fail(error: RullamaError): void;
}

interface StubMessage {
  role: string;
  content: string;
  images?: File[];
  audio?: File[];
}

export const loadings: Loading[] = [];
export const unloaded: Engine[] = [];

export class Engine {
  static load(model: string, options: Loading["options"]): Promise<Engine> {
    return new Promise((resolve, reject) => {
      loadings.push({ model, options, finish: () => resolve(new Engine()), fail: reject });
      options.signal?.addEventListener("abort", () => reject(Object.assign(new RullamaError("The operation was cancelled."), { code: "cancelled" })));
    });
  }

  // A private field, as the real engine has: a proxy around the engine cannot read it.
  readonly #words = ["You ", "said: "];

  async *chat(messages: StubMessage[], { onEncode }: { onEncode?(progress: object): void } = {}) {
    const { images = [], audio = [] } = messages.at(-1) ?? {};
    const media = [...images, ...audio];
    media.forEach((_, index) => onEncode?.({ index, count: media.length, fraction: 0.5 }));
    yield* media.map(({ name }) => ({ text: `${name}: ` }));
    for (const text of [...this.#words, messages.at(-1)?.content ?? ""]) yield { text };
  }

  async unload() {
    unloaded.push(this);
  }
}
