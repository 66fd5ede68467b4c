// Errors with codes that stay the same between versions. Most codes come from Rust; those of JavaScript are named here.

/** Codes of failures that begin in JavaScript. Rust adds its own, such as `memory.too_large`; see the guide. */
export type RullamaErrorCode =
  | "cancelled"
  | "device.lost"
  | "device.unavailable"
  | "engine.unloaded"
  | "internal"
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

/** What an error says beyond its message, as far as it says something. The store's errors say more; see `StoreErrorDetails`. */
export interface ErrorDetails {
  /** Tokens of the largest context that would do. */
  readonly largestContext?: number;
  /** Bytes that would be needed. */
  readonly bytes?: number;
  /** Tokens of a prompt that does not fit, and of the context that it does not fit. */
  readonly tokens?: number;
  readonly context?: number;
  readonly [name: string]: unknown;
}

/** What errors of the engine say in numbers. */
const NUMBERS = ["largestContext", "bytes", "tokens", "context"] as const;

/** Everything that this package throws. */
export class RullamaError extends Error {
  readonly code: RullamaErrorCode;
  readonly details: ErrorDetails;

  constructor(code: RullamaErrorCode, message: string, options: { cause?: unknown; details?: ErrorDetails } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    // What is cancelled is an `AbortError` everywhere else, and programs look for that name.
    this.name = code === "cancelled" ? "AbortError" : "RullamaError";
    this.code = code;
    this.details = options.details ?? {};
  }

  /** Whatever was thrown, as an error of this kind; `code` for what has none of its own. */
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

  /** What a signal that was aborted makes of the work it stands for. */
  static cancelled(reason?: unknown): RullamaError {
    return new RullamaError("cancelled", "it was cancelled", { cause: reason });
  }
}

/** An error in a form that can be sent to another thread. */
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
