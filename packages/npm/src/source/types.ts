// Where a model's bytes come from.

/** A sequence of bytes of known length that can be read anywhere. */
export interface ByteSource {
  readonly length: number;
  readonly name: string;
  read(offset: number, length: number): Promise<Uint8Array>;
  close?(): void;
}
