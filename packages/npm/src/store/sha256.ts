// SHA-256 that can stop and go on: WebCrypto digests only what is whole in memory, and a model is not.
//
// The state between two blocks is eight words. The store keeps it for every part of a file, so that a download resumes
// without reading again what is stored.

const BLOCK = 64;
const STATE_DIGITS = 64;

// The standard's constants: the first 32 bits of the fractions of the square roots of the first 8 primes, and of
// the cube roots of the first 64. Written out, because no two engines promise the same last bits of `Math.cbrt`.
const INITIAL = Int32Array.of(
  0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
);
const ROUND = Int32Array.of(
  0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
  0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
  0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
  0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
  0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
  0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
  0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
  0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
);

// One schedule for all hashers: a block is finished before anything else can run.
const schedule = new Int32Array(64);

export class Sha256 {
  readonly #words: Int32Array;
  readonly #block = new Uint8Array(BLOCK);
  #filled = 0;
  #length = 0;

  constructor(words: Int32Array = INITIAL) {
    this.#words = Int32Array.from(words);
  }

  /** Goes on from `state`, which was taken after `length` bytes. */
  static resume(state: string, length: number): Sha256 {
    if (!isState(state, length)) throw new TypeError(`not a SHA-256 state after ${length} bytes`);
    const bytes = fromHex(state);
    const view = new DataView(bytes.buffer);
    const hash = new Sha256(Int32Array.from({ length: 8 }, (_, i) => view.getInt32(4 * i)));
    hash.#block.set(bytes.subarray(32));
    hash.#filled = bytes.length - 32;
    hash.#length = length;
    return hash;
  }

  update(bytes: Uint8Array): this {
    this.#length += bytes.length;
    let at = 0;
    if (this.#filled > 0) {
      at = Math.min(BLOCK - this.#filled, bytes.length);
      this.#block.set(bytes.subarray(0, at), this.#filled);
      this.#filled += at;
      if (this.#filled < BLOCK) return this;
      compress(this.#words, this.#block, 0, 1);
      this.#filled = 0;
    }
    const blocks = Math.floor((bytes.length - at) / BLOCK);
    compress(this.#words, bytes, at, blocks);
    at += blocks * BLOCK;
    this.#block.set(bytes.subarray(at));
    this.#filled = bytes.length - at;
    return this;
  }

  digest(): Uint8Array {
    const words = Int32Array.from(this.#words);
    const blocks = this.#filled < BLOCK - 8 ? 1 : 2;
    const tail = new Uint8Array(blocks * BLOCK);
    tail.set(this.#block.subarray(0, this.#filled));
    tail[this.#filled] = 0x80;
    // The length in bits needs more than 32 bits, and more than the 53 of a number only past 2^50 bytes.
    const view = new DataView(tail.buffer);
    view.setUint32(tail.length - 8, Math.floor(this.#length / 0x2000_0000));
    view.setUint32(tail.length - 4, (this.#length << 3) >>> 0);
    compress(words, tail, 0, blocks);
    return bigEndian(words);
  }

  /** The digest of what came so far, as hex digits. The hash may go on afterwards. */
  hex(): string {
    return toHex(this.digest());
  }

  /** All that is needed to go on later, as hex digits: eight words, then the bytes of an unfinished block. */
  state(): string {
    return toHex(bigEndian(this.#words)) + toHex(this.#block.subarray(0, this.#filled));
  }
}

/** Whether `text` can be the state after `length` bytes. */
export function isState(text: unknown, length: number): text is string {
  return typeof text === "string" && /^[0-9a-f]*$/.test(text) && text.length === STATE_DIGITS + 2 * (length % BLOCK);
}

function compress(state: Int32Array, bytes: Uint8Array, at: number, blocks: number): void {
  const w = schedule;
  let h0 = state[0]!, h1 = state[1]!, h2 = state[2]!, h3 = state[3]!;
  let h4 = state[4]!, h5 = state[5]!, h6 = state[6]!, h7 = state[7]!;
  for (; blocks > 0; blocks--, at += BLOCK) {
    for (let i = 0, p = at; i < 16; i++, p += 4) {
      w[i] = (bytes[p]! << 24) | (bytes[p + 1]! << 16) | (bytes[p + 2]! << 8) | bytes[p + 3]!;
    }
    for (let i = 16; i < 64; i++) {
      const x = w[i - 15]!;
      const y = w[i - 2]!;
      const s0 = ((x >>> 7) | (x << 25)) ^ ((x >>> 18) | (x << 14)) ^ (x >>> 3);
      const s1 = ((y >>> 17) | (y << 15)) ^ ((y >>> 19) | (y << 13)) ^ (y >>> 10);
      w[i] = (w[i - 16]! + s0 + w[i - 7]! + s1) | 0;
    }
    let a = h0, b = h1, c = h2, d = h3, e = h4, f = h5, g = h6, h = h7;
    for (let i = 0; i < 64; i++) {
      const s1 = ((e >>> 6) | (e << 26)) ^ ((e >>> 11) | (e << 21)) ^ ((e >>> 25) | (e << 7));
      const t1 = (h + s1 + (g ^ (e & (f ^ g))) + ROUND[i]! + w[i]!) | 0;
      const s0 = ((a >>> 2) | (a << 30)) ^ ((a >>> 13) | (a << 19)) ^ ((a >>> 22) | (a << 10));
      const t2 = (s0 + ((a & b) | (c & (a | b)))) | 0;
      h = g;
      g = f;
      f = e;
      e = (d + t1) | 0;
      d = c;
      c = b;
      b = a;
      a = (t1 + t2) | 0;
    }
    h0 = (h0 + a) | 0;
    h1 = (h1 + b) | 0;
    h2 = (h2 + c) | 0;
    h3 = (h3 + d) | 0;
    h4 = (h4 + e) | 0;
    h5 = (h5 + f) | 0;
    h6 = (h6 + g) | 0;
    h7 = (h7 + h) | 0;
  }
  state.set([h0, h1, h2, h3, h4, h5, h6, h7]);
}

function bigEndian(words: Int32Array): Uint8Array {
  const bytes = new Uint8Array(4 * words.length);
  const view = new DataView(bytes.buffer);
  words.forEach((word, i) => view.setInt32(4 * i, word));
  return bytes;
}

export function toHex(bytes: Uint8Array): string {
  let text = "";
  for (const byte of bytes) text += byte.toString(16).padStart(2, "0");
  return text;
}

function fromHex(text: string): Uint8Array {
  return Uint8Array.from({ length: text.length / 2 }, (_, i) => parseInt(text.slice(2 * i, 2 * i + 2), 16));
}
