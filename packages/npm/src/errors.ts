// The one error class of the package: `code` is the stable contract, the message states facts.

export class RullamaError extends Error {
  readonly code: string;

  constructor(code: string, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "RullamaError";
    this.code = code;
  }
}
