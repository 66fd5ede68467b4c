// One file on its way from its origin to disk.
//
// Bytes are written where they belong as they come, hashed on the way, and flushed with the record at the end of
// every part and at least once a second. When the connection breaks the next request starts at the byte after the
// last one written, so nothing is fetched twice but what the browser had buffered and dropped; after a crash, at most
// the last second is.

import { Pace, Watch } from "../source/wire.js";
import { blockDigest } from "./blocks.js";
import { StoreError, cancelled, hasCode, quota } from "./error.js";
import type { FileWriter, StoreFiles } from "./files.js";
import { Interrupted } from "./http-origin.js";
import type { FileNames } from "./names.js";
import type { Origin, OriginReply } from "./origin.js";
import type { OnProgress } from "./progress.js";
import { ProgressMeter } from "./progress.js";
import type { StoreRecord } from "./record.js";
import { blockBytes, restart, rollBack } from "./record.js";
import { Sha256 } from "./sha256.js";
import { writeRecord } from "./shelf.js";

export interface TransferPolicy {
  /** Tries in a row that may bring no byte. */
  retries: number;
  /** Wait before the first of them, in milliseconds; doubled each time. */
  delay: number;
  /** Longest wait. */
  longestDelay: number;
  /** A connection that gives nothing for this long, not even an answer, counts as broken. */
  stall: number;
  /** The fewest bytes that must arrive in each window. Pauses between requests count, time for writing to the disk does not. */
  leastBytes: number;
  /** Milliseconds of such a window. */
  window: number;
  /** Longest time between two records. */
  checkpoint: number;
}

export const PATIENT: TransferPolicy = { retries: 6, delay: 500, longestDelay: 15_000, stall: 60_000, leastBytes: 64 << 10, window: 60_000, checkpoint: 1000 };

export interface TransferJob {
  files: StoreFiles;
  /** What it is written to. */
  names: FileNames;
  /** What is stored so far. Changed as the transfer goes on. */
  record: StoreRecord;
  origin: Origin;
  /** What the caller knows of the file; the origin must agree. */
  expected: { sha256?: string; bytes?: number };
  /** Bytes of a stored file that this one is to replace. */
  kept?: number;
  policy: TransferPolicy;
  signal: AbortSignal;
  onProgress?: OnProgress;
}

// A file that changes again and again under the download is not going to be whole.
const MOST_CHANGES = 3;

/** Fetches what is missing, checks the whole and marks it complete. Throws with everything kept for resuming. */
export async function transfer(job: TransferJob): Promise<void> {
  const { names } = job;
  // A whole file is looked for first, so one that lies there must go before the record calls the new one whole.
  await job.files.remove(names.whole);
  const writer = await job.files.openWrite(names.part);
  const work = new Transfer(job, writer);
  try {
    await work.resume();
    await work.fetchAll();
    await work.finish();
  } finally {
    await writer.close();
  }
  // The record already says that the file is whole, so a crash here does no harm.
  await job.files.rename(names.part, names.whole);
}

class Transfer {
  readonly #job: TransferJob;
  readonly #writer: FileWriter;
  readonly #record: StoreRecord;
  readonly #meter: ProgressMeter;
  readonly #pace: Pace;
  /** What there is of the block that is not full yet. */
  readonly #block: Uint8Array;
  #hasher = new Sha256();
  #recorded = performance.now();
  #changes = 0;
  #noRanges = false;
  #promised: string | undefined;
  #guess: string | undefined;

  constructor(job: TransferJob, writer: FileWriter) {
    this.#job = job;
    this.#writer = writer;
    this.#record = job.record;
    this.#meter = new ProgressMeter("download", job.record.name, job.onProgress);
    this.#pace = new Pace(job.policy.leastBytes, job.policy.window, job.policy.stall);
    this.#block = new Uint8Array(blockBytes(job.record));
    this.#promised = job.expected.sha256 ?? job.record.sha256;
  }

  async resume(): Promise<void> {
    // A disk that lost the end of the file takes the record back with it.
    const record = this.#record;
    rollBack(record, await this.#writer.size());
    if (!(await this.#endIsIntact())) rollBack(record, record.stored - 1);
    this.#continueHash();
    this.#meter.at(this.#record.stored, this.#record.bytes);
  }

  async fetchAll(): Promise<void> {
    const { policy, signal } = this.#job;
    this.#pace.start();
    for (let fruitless = 0; !this.#whole(); ) {
      const before = this.#record.stored;
      try {
        await this.#fetchOnce();
      } catch (error) {
        // A record that cannot be written (a full disk) must not hide why the transfer stopped.
        await this.#checkpoint().catch(() => {});
        if (!(error instanceof Interrupted)) throw error;
        const progress = this.#record.stored > before;
        // A server could send one byte before each failure, and be asked again forever.
        const slow = progress ? this.#pace.add(0) : undefined;
        if (slow) throw this.#tooSlow(slow);
        fruitless = progress ? 1 : fruitless + 1;
        if (fruitless > policy.retries) throw this.#noRanges ? this.#cannotResume(error) : error;
        await sleep(error.wait ?? backOff(policy, fruitless), signal);
        if (!progress) this.#pace.start();
      }
    }
  }

  async finish(): Promise<void> {
    const record = this.#record;
    await this.#writer.truncate(record.stored);
    await this.#checkpoint();
    const digest = this.#hasher.hex();
    if (this.#promised !== undefined && this.#promised !== digest) {
      // Which byte is wrong cannot be told, so none is kept.
      const promised = this.#promised;
      await this.#restart();
      await this.#writer.truncate(0);
      throw new StoreError(
        "storage.corrupt",
        `\`${record.name}\` has the SHA-256 ${digest}; ${this.#job.expected.sha256 ? "the caller" : "its server"} promised ${promised}`,
        { file: record.name },
      );
    }
    const rest = record.stored % this.#block.length;
    const last = rest === 0 ? [] : [await blockDigest(this.#block.subarray(0, rest))];
    // A guess that fails was no digest: whoever tells the size only vouches for that.
    record.proof = (this.#promised ?? this.#guess) === digest ? "sha256" : "size";
    record.sha256 = digest;
    record.blocks.push(...last);
    record.complete = true;
    await this.#checkpoint();
    this.#meter.at(record.stored, record.bytes);
  }

  #whole(): boolean {
    return this.#record.bytes !== undefined && this.#record.stored === this.#record.bytes;
  }

  async #fetchOnce(): Promise<void> {
    const { signal, policy } = this.#job;
    const { name } = this.#record;
    if (signal.aborted) throw cancelled(`storing \`${name}\``);
    const watch = new Watch(policy.stall, signal);
    try {
      const reply = await this.#open(watch);
      watch.alive();
      if (reply) await this.#take(reply, watch);
    } catch (error) {
      if (signal.aborted) throw cancelled(`storing \`${name}\``);
      // What the disk says is told as it is, however long it took.
      const broken = !(error instanceof StoreError) || error instanceof Interrupted || error.code === "cancelled";
      if (watch.silent && broken) throw new Interrupted(`no byte of \`${name}\` came for ${policy.stall / 1000} s`, {}, undefined, { cause: error });
      throw error;
    } finally {
      watch.end();
    }
  }

  /** Asks for the rest; undefined when the answer was of no use and the next one will start at 0. */
  async #open(watch: Watch): Promise<OriginReply | undefined> {
    const { origin } = this.#job;
    const record = this.#record;
    let reply: OriginReply;
    try {
      reply = await watch.race(origin.open(record.stored, record.validator, watch.signal));
    } catch (error) {
      // Nothing lies past the stored bytes: the file has become shorter.
      if (record.stored > 0 && error instanceof StoreError && error.details.status === 416) return this.#changed();
      throw error;
    }
    if (record.stored > 0 && differs(record, reply)) {
      await this.#changed();
      if (reply.offset !== 0) return undefined;
    }
    if (reply.offset !== record.stored) {
      if (reply.offset !== 0) {
        throw new StoreError("source.content_range", `asked for \`${record.name}\` from byte ${record.stored} on, the server answered from byte ${reply.offset} on`, { file: record.name });
      }
      // The server knows no ranges. The unchanged bytes come again, and are written again.
      this.#noRanges = true;
      await this.#restart();
    }
    await this.#adopt(reply);
    return reply;
  }

  /** Takes over what the origin says of the file, and sees whether there is room for it. */
  async #adopt(reply: OriginReply): Promise<void> {
    const { expected, files } = this.#job;
    const record = this.#record;
    if (reply.bytes !== undefined) record.bytes = reply.bytes;
    if (reply.validator !== undefined) record.validator = reply.validator;
    if (expected.sha256 === undefined && reply.sha256 !== undefined) {
      this.#promised = reply.sha256;
      record.sha256 = reply.sha256;
    }
    this.#guess = reply.guess;
    if (expected.bytes !== undefined && record.bytes !== undefined && expected.bytes !== record.bytes) {
      throw new StoreError("source.changed", `\`${record.name}\` has ${record.bytes} bytes on its server; ${expected.bytes} were expected`, { file: record.name });
    }
    if (record.bytes === undefined && expected.bytes !== undefined) record.bytes = expected.bytes;
    if (record.bytes === undefined) {
      // Where nobody tells the size, a guess has to be right.
      this.#promised ??= this.#guess;
      if (this.#promised !== undefined) return;
      throw new StoreError("source.content_range", `the server tells neither size nor SHA-256 of \`${record.name}\`, so a half file could not be told from a whole one`, { file: record.name });
    }
    const needed = record.bytes - record.stored;
    const { free } = await files.space();
    const { kept } = this.#job;
    // What lies on disk past the stored bytes will be written over and needs no room of its own.
    const reusable = Math.max(0, (await this.#writer.size()) - record.stored);
    if (free !== undefined && needed - reusable > free) throw quota(record.name, needed, free, kept === undefined ? {} : { kept });
  }

  async #take(reply: OriginReply, watch: Watch): Promise<void> {
    const record = this.#record;
    const reader = reply.body.getReader();
    try {
      for (;;) {
        const { done, value } = await watch.race(reader.read());
        if (done) break;
        const slow = this.#pace.add(value.length);
        await this.#append(value);
        if (slow && !this.#whole()) throw this.#tooSlow(slow);
        // Writing to the disk is not the server's time.
        this.#pace.start();
        watch.alive();
      }
    } catch (cause) {
      // Ends a read that is still waiting, in streams that do not notice the end of their request.
      void reader.cancel().catch(() => {});
      if (cause instanceof StoreError) throw cause;
      throw new Interrupted(`the connection broke after ${record.stored} bytes of \`${record.name}\`: ${cause instanceof Error ? cause.message : String(cause)}`, {}, undefined, { cause });
    }
    // Where the server never told the size, the promised hash tells whether this was the end.
    record.bytes ??= record.stored;
    if (record.stored < record.bytes) {
      throw new Interrupted(`the connection ended after ${record.stored} of ${record.bytes} bytes of \`${record.name}\``);
    }
  }

  async #append(bytes: Uint8Array): Promise<void> {
    const record = this.#record;
    if (record.bytes !== undefined && record.stored + bytes.length > record.bytes) {
      throw new StoreError("source.content_range", `the server sent more than the ${record.bytes} bytes it had told for \`${record.name}\``, { file: record.name });
    }
    for (let at = 0; at < bytes.length; ) {
      const filled = record.stored % this.#block.length;
      const piece = bytes.subarray(at, at + this.#block.length - filled);
      await this.#write(piece);
      this.#block.set(piece, filled);
      const digest = filled + piece.length === this.#block.length ? await blockDigest(this.#block) : undefined;
      // From here to the checkpoint nothing is awaited: the record and its hashes speak of the same bytes.
      this.#hasher.update(piece);
      record.stored += piece.length;
      at += piece.length;
      if (digest !== undefined) record.blocks.push(digest);
      if (record.stored % record.partBytes === 0) {
        record.parts.push(this.#hasher.state());
        await this.#checkpoint();
      }
    }
    if (performance.now() - this.#recorded > this.#job.policy.checkpoint) await this.#checkpoint();
    this.#meter.at(record.stored, record.bytes);
  }

  async #write(bytes: Uint8Array): Promise<void> {
    const record = this.#record;
    try {
      await this.#writer.write(bytes, record.stored);
    } catch (error) {
      if (!hasCode(error, "storage.quota")) throw error;
      const { files, kept } = this.#job;
      const { free } = await files.space();
      const needed = (record.bytes ?? record.stored + bytes.length) - record.stored;
      throw quota(record.name, needed, free, { cause: error, ...(kept === undefined ? {} : { kept }) });
    }
  }

  #tooSlow(how: string): StoreError {
    const { name } = this.#record;
    return new StoreError("source.too_slow", `the server of \`${name}\` is too slow: ${how}`, { file: name });
  }

  #cannotResume(cause: Interrupted): StoreError {
    const { name } = this.#record;
    return new StoreError("source.range_ignored", `the connection broke again and again, and the server of \`${name}\` cannot go on where it stopped: ${cause.message}`, { file: name }, { cause });
  }

  async #changed(): Promise<undefined> {
    const { name } = this.#record;
    this.#changes++;
    await this.#restart();
    if (this.#changes > MOST_CHANGES) {
      throw new StoreError("source.changed", `\`${name}\` changed on its server ${this.#changes} times while it was fetched`, { file: name });
    }
  }

  /** Forgets the bytes, on disk first: a record of old bytes must not outlive the first new one. */
  async #restart(): Promise<void> {
    restart(this.#record);
    this.#promised = this.#job.expected.sha256;
    if (this.#promised === undefined) delete this.#record.sha256;
    this.#continueHash();
    await this.#checkpoint();
  }

  #continueHash(): void {
    const { state, stored } = this.#record;
    this.#hasher = state === undefined ? new Sha256() : Sha256.resume(state, stored);
  }

  /** Whether the bytes since the last full part are as they were written; those of its last block are needed again. */
  async #endIsIntact(): Promise<boolean> {
    const { stored, partBytes, parts, state } = this.#record;
    const start = parts.length * partBytes;
    if (start === stored) return true;
    const before = parts.at(-1);
    const hasher = before === undefined ? new Sha256() : Sha256.resume(before, start);
    for (let at = start; at < stored; at += this.#block.length) {
      const bytes = await this.#writer.read(at, Math.min(this.#block.length, stored - at));
      hasher.update(bytes);
      this.#block.set(bytes);
    }
    return hasher.state() === state;
  }

  async #checkpoint(): Promise<void> {
    const record = this.#record;
    await this.#writer.flush();
    if (record.stored > 0) record.state = this.#hasher.state();
    await writeRecord(this.#job.files, this.#job.names.record, record);
    this.#recorded = performance.now();
  }
}

function differs(record: StoreRecord, reply: OriginReply): boolean {
  const other = <T>(a: T | undefined, b: T | undefined) => a !== undefined && b !== undefined && a !== b;
  return other(record.validator, reply.validator) || other(record.bytes, reply.bytes);
}

function backOff(policy: TransferPolicy, tries: number): number {
  // Spread, so that many tabs that lost one server do not return in step.
  return Math.min(policy.delay * 2 ** (tries - 1), policy.longestDelay) * (0.75 + Math.random() / 2);
}

function sleep(milliseconds: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(cancelled("waiting"));
    const stop = () => {
      clearTimeout(timer);
      reject(cancelled("waiting"));
    };
    const timer = setTimeout(() => {
      signal.removeEventListener("abort", stop);
      resolve();
    }, milliseconds);
    signal.addEventListener("abort", stop, { once: true });
  });
}
