// Errors with codes that stay the same between versions. Most codes come from Rust; this file lists those of JavaScript.

/** Codes of errors that JavaScript raises. The engine adds its own, such as `memory.too_large`; the guide lists all. */
export type RullamaErrorCode =
  | "cancelled"
  | "device.lost"
  | "device.unavailable"
  | "engine.unloaded"
  | "gguf.not_gguf"
  | "internal"
  | "option.out_of_range"
  | "option.unknown"
  | "option.wrong_type"
  | "session.busy"
  | "session.closed"
  | "source.changed"
  | "source.connection"
  | "source.content_range"
  | "source.io"
  | "source.other"
  | "source.out_of_range"
  | "source.range_ignored"
  | "source.status"
  | "source.too_slow"
  | "source.truncated"
  | "worker.failed"
  | (string & {});

/** The facts of an error, for programs. Each kind of error has its own; `StoreErrorDetails` lists those of the store. */
export interface ErrorDetails {
  /** The largest context that would fit, in tokens. */
  readonly largestContext?: number;
  /** The bytes that would be needed. */
  readonly bytes?: number;
  /** The length of a prompt that is too long, and of the context, in tokens. */
  readonly tokens?: number;
  readonly context?: number;
  /** A model that does not fit on the GPU would fit on the CPU: `backend: "cpu"`. */
  readonly fitsOnCpu?: boolean;
  readonly [name: string]: unknown;
}

/** The details that the engine sets on its errors. */
const NUMBERS = ["largestContext", "bytes", "tokens", "context"] as const;

/** The class of every error that this package throws. */
export class RullamaError extends Error {
  readonly code: RullamaErrorCode;
  readonly details: ErrorDetails;

  constructor(code: RullamaErrorCode, message: string, options: { cause?: unknown; details?: ErrorDetails } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    // The web platform's name for cancelled work, which programs look for.
    this.name = code === "cancelled" ? "AbortError" : "RullamaError";
    this.code = code;
    this.details = options.details ?? {};
  }

  /** Converts anything that was thrown. `code` is used if it has no code of its own. */
  static from(thrown: unknown, code: RullamaErrorCode = "internal"): RullamaError {
    if (thrown instanceof RullamaError) {
      return thrown;
    }
    if (thrown instanceof Error) {
      const known = thrown as Error & { code?: unknown } & Partial<Record<(typeof NUMBERS)[number], unknown>>;
      const details: Record<string, unknown> = {};
      for (const name of NUMBERS) {
        const value = known[name];
        if (typeof value === "number") {
          details[name] = value;
        }
      }
      const own = typeof known.code === "string" ? known.code : code;
      return new RullamaError(own, thrown.message, { cause: thrown, details });
    }
    return new RullamaError(code, String(thrown), { cause: thrown });
  }

  /** The error of cancelled work. */
  static cancelled(reason?: unknown): RullamaError {
    return new RullamaError("cancelled", "The operation was cancelled.", { cause: reason });
  }
}

/** An error in a form that can be posted to another thread. */
export interface SentError {
  code: string;
  message: string;
  details: ErrorDetails;
}

export function toSent(thrown: unknown): SentError {
  const { code, message, details } = RullamaError.from(thrown);
  return { code, message, details };
}

export function fromSent({ code, message, details }: SentError): RullamaError {
  return new RullamaError(code, message, { details });
}
