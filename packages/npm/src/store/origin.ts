// An origin gives a file's bytes from any offset on: a server, or a file the user picked.

/** What an origin answers. */
export interface OriginReply {
  /** Where the body starts: as asked, or 0 where the origin cannot start elsewhere. */
  offset: number;
  /** Size of the whole file, where the origin says. */
  bytes?: number;
  /** Changes when the file changes. */
  validator?: string;
  /** The digest the whole file should have, where the origin says. */
  sha256?: string;
  /** What may be that digest, and may be something else. */
  guess?: string;
  body: ReadableStream<Uint8Array>;
}

export interface Origin {
  /** What to record as the file's address; missing where there is none to come back to. */
  readonly url?: string;
  /** Bytes from `offset` to the end, or up to `end`. `validator` is that of the bytes already stored. */
  open(offset: number, validator: string | undefined, signal: AbortSignal, end?: number): Promise<OriginReply>;
}

/** A file the user picked, or any other `Blob`. Picked again after a reload, it goes on where it stopped. */
export class BlobOrigin implements Origin {
  readonly #blob: Blob;
  readonly #validator: string;

  constructor(blob: Blob) {
    this.#blob = blob;
    const { name, lastModified } = blob as Partial<File>;
    // A blob without a date may be anything of that size, so what is stored of another is not continued.
    this.#validator = lastModified === undefined ? `blob:${crypto.randomUUID()}` : `file:${name}:${lastModified}`;
  }

  async open(offset: number): Promise<OriginReply> {
    return {
      offset,
      bytes: this.#blob.size,
      validator: this.#validator,
      body: this.#blob.slice(offset).stream() as ReadableStream<Uint8Array>,
    };
  }
}
