// Copies one file from its origin to disk.
//
// Bytes are hashed and written as they arrive, and flushed together with the record at the end of every part and at least once a second.
// After a broken connection the next request starts at the byte after the last one written, so only bytes that the browser had buffered
// are fetched twice; after a crash, at most those of the last second.

import { FIRST_ATTEMPTS, FIRST_SILENCE, unreachable } from "../source/reach.js";
import { Pace, Watch } from "../source/wire.js";
import { blockDigest } from "./blocks.js";
import { StoreError, cancelled, hasCode, quota } from "./error.js";
import type { FileWriter, StoreFiles } from "./files.js";
import { MAGIC_BYTES, checkGguf } from "./gguf.js";
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
  /** Retries in a row without a new byte, for a server that has answered before. */
  retries: number;
  /** Milliseconds before the first retry; doubled each time. */
  delay: number;
  /** Longest wait. */
  longestDelay: number;
  /** A connection without data for this many milliseconds counts as broken. */
  stall: number;
  /** The minimum number of bytes in each window. Pauses between requests count, time for writing to the disk does not. */
  leastBytes: number;
  /** Length of a window in milliseconds. */
  window: number;
  /** Longest time between two records, in milliseconds. */
  checkpoint: number;
}

export const PATIENT: TransferPolicy = { retries: 6, delay: 500, longestDelay: 15_000, stall: 60_000, leastBytes: 64 << 10, window: 60_000, checkpoint: 1000 };

export interface TransferJob {
  files: StoreFiles;
  /** The files to write to. */
  names: FileNames;
  /** What is stored so far. Updated during the transfer. */
  record: StoreRecord;
  origin: Origin;
  /** What the caller knows about the file. The origin must agree. */
  expected: { sha256?: string; bytes?: number };
  /** Size of the stored file that this one replaces. */
  kept?: number;
  policy: TransferPolicy;
  /** Replaces `fetch` in tests. */
  fetch?: typeof fetch;
  signal: AbortSignal;
  onProgress?: OnProgress;
}

// A file that changes this often during its download is given up.
const MOST_CHANGES = 3;

/** Fetches the missing bytes, checks the whole file and marks it complete. If it throws, the stored bytes are kept for resuming. */
export async function transfer(job: TransferJob): Promise<void> {
  const { names } = job;
  // Readers look for the complete file first, so an old one must be gone before the record says that the new one is complete.
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
  // The record already says that the file is complete, so a crash here does no harm.
  await job.files.rename(names.part, names.whole);
}

class Transfer {
  readonly #job: TransferJob;
  readonly #writer: FileWriter;
  readonly #record: StoreRecord;
  readonly #meter: ProgressMeter;
  readonly #pace: Pace;
  /** The bytes of the current block. */
  readonly #block: Uint8Array;
  #hasher = new Sha256();
  #recorded = performance.now();
  #changes = 0;
  #noRanges = false;
  /** Whether the server has answered during this transfer. */
  #answered = false;
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
    // If the disk lost the end of the file, the record goes back to what is left.
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
        // If the record cannot be written (a full disk), the reason why the transfer stopped is still reported.
        await this.#checkpoint().catch(() => {});
        if (!(error instanceof Interrupted)) throw error;
        const progress = this.#record.stored > before;
        // A server could send one byte before each failure, and be asked again forever.
        const slow = progress ? this.#pace.add(0) : undefined;
        if (slow) throw this.#tooSlow(slow);
        fruitless = progress ? 1 : fruitless + 1;
        if (error.unanswered && !this.#answered && fruitless >= FIRST_ATTEMPTS) throw await this.#unreachable(error);
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
    // Also finds a file that is shorter than the check in `#append` needs.
    await this.#checkStart(await this.#writer.read(0, Math.min(record.stored, MAGIC_BYTES)));
    const digest = this.#hasher.hex();
    if (this.#promised !== undefined && this.#promised !== digest) {
      // The wrong bytes cannot be located, so none are kept.
      const promised = this.#promised;
      await this.#restart();
      await this.#writer.truncate(0);
      throw new StoreError(
        "storage.corrupt",
        `\`${record.name}\` has the SHA-256 ${digest}, but ${this.#job.expected.sha256 ? "the caller expects" : "its server announced"} ${promised}. Nothing was kept.`,
        { file: record.name },
      );
    }
    const rest = record.stored % this.#block.length;
    const last = rest === 0 ? [] : [await blockDigest(this.#block.subarray(0, rest))];
    // A guess that does not match was not a digest. Then only the size was checked.
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
    if (signal.aborted) throw cancelled(`Storing \`${name}\``);
    const watch = new Watch(this.#answered ? policy.stall : Math.min(policy.stall, FIRST_SILENCE), signal);
    try {
      const reply = await this.#open(watch);
      watch.alive();
      if (reply) await this.#take(reply, watch);
    } catch (error) {
      if (signal.aborted) throw cancelled(`Storing \`${name}\``);
      // An error of the disk is reported as it is, however long it took.
      const broken = !(error instanceof StoreError) || error instanceof Interrupted || error.code === "cancelled";
      if (watch.silent && broken) {
        const silent = new Interrupted(watch.silent.message, {}, undefined, { cause: error });
        // A server that has never answered would keep each retry waiting as long again.
        throw this.#answered ? silent : await this.#unreachable(silent);
      }
      throw error;
    } finally {
      watch.end();
    }
  }

  /** Requests the rest. Undefined if the response cannot be used and the next request has to start at 0. */
  async #open(watch: Watch): Promise<OriginReply | undefined> {
    const { origin } = this.#job;
    const record = this.#record;
    let reply: OriginReply;
    try {
      reply = await watch.race(origin.open(record.stored, record.validator, watch.signal));
      this.#answered = true;
    } catch (error) {
      this.#answered ||= error instanceof StoreError && error.details.status !== undefined;
      // There is nothing after the stored bytes: the file has become shorter.
      if (record.stored > 0 && error instanceof StoreError && error.details.status === 416) return this.#changed();
      throw error;
    }
    if (record.stored > 0 && differs(record, reply)) {
      await this.#changed();
      if (reply.offset !== 0) return undefined;
    }
    if (reply.offset !== record.stored) {
      if (reply.offset !== 0) {
        throw new StoreError("source.content_range", `The server of \`${record.name}\` sent bytes from ${reply.offset} instead of ${record.stored}.`, { file: record.name });
      }
      // The server does not support ranges. It sends the same bytes again, and they are written again.
      this.#noRanges = true;
      await this.#restart();
    }
    await this.#adopt(reply);
    return reply;
  }

  /** Records what the origin says about the file, and checks that there is enough space. */
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
      throw new StoreError("source.changed", `\`${record.name}\` has ${record.bytes} bytes on its server instead of the expected ${expected.bytes}.`, { file: record.name });
    }
    if (record.bytes === undefined && expected.bytes !== undefined) record.bytes = expected.bytes;
    if (record.bytes === undefined) {
      // Without a size, the guessed digest has to match.
      this.#promised ??= this.#guess;
      if (this.#promised !== undefined) return;
      throw new StoreError("source.content_range", `The server of \`${record.name}\` sends neither its size nor its SHA-256, so an incomplete file could not be detected. Pass the option \`bytes\` or \`sha256\`.`, { file: record.name });
    }
    const needed = record.bytes - record.stored;
    const { free } = await files.space();
    const { kept } = this.#job;
    // Bytes on disk after the stored ones will be overwritten and need no extra space.
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
      // Some streams do not notice that their request has ended; this ends a read that is still waiting.
      void reader.cancel().catch(() => {});
      if (cause instanceof StoreError) throw cause;
      throw new Interrupted(`The connection broke after ${record.stored} bytes of \`${record.name}\`: ${cause instanceof Error ? cause.message : String(cause)}`, {}, undefined, { cause });
    }
    // Without a size, the announced hash shows later whether this was the end.
    record.bytes ??= record.stored;
    if (record.stored < record.bytes) {
      throw new Interrupted(`The connection ended after ${record.stored} of ${record.bytes} bytes of \`${record.name}\`.`);
    }
  }

  async #append(bytes: Uint8Array): Promise<void> {
    const record = this.#record;
    if (record.bytes !== undefined && record.stored + bytes.length > record.bytes) {
      throw new StoreError("source.content_range", `The server sent more than the ${record.bytes} bytes that it had announced for \`${record.name}\`.`, { file: record.name });
    }
    for (let at = 0; at < bytes.length; ) {
      const filled = record.stored % this.#block.length;
      const piece = bytes.subarray(at, at + this.#block.length - filled);
      await this.#write(piece);
      this.#block.set(piece, filled);
      const digest = filled + piece.length === this.#block.length ? await blockDigest(this.#block) : undefined;
      // Nothing is awaited from here to the checkpoint, so the record and its hashes cover the same bytes.
      this.#hasher.update(piece);
      const isStart = record.stored < MAGIC_BYTES && record.stored + piece.length >= MAGIC_BYTES;
      record.stored += piece.length;
      at += piece.length;
      if (digest !== undefined) record.blocks.push(digest);
      if (isStart) await this.#checkStart(this.#block);
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
    return new StoreError("source.too_slow", `The server of \`${name}\` is too slow: ${how}.`, { file: name });
  }

  /** Refuses a file that is not GGUF, and keeps nothing of it. */
  async #checkStart(start: Uint8Array): Promise<void> {
    try {
      checkGguf(this.#record.name, start);
    } catch (error) {
      await this.#restart();
      await this.#writer.truncate(0);
      throw error;
    }
  }

  async #unreachable(cause: Interrupted): Promise<StoreError> {
    const { origin, fetch } = this.#job;
    const message = origin.url === undefined ? cause.message : await unreachable(origin.url, cause.message, fetch);
    return new StoreError("source.connection", message, { file: this.#record.name }, { cause });
  }

  #cannotResume(cause: Interrupted): StoreError {
    const { name } = this.#record;
    return new StoreError("source.range_ignored", `The connection broke repeatedly, and the server of \`${name}\` cannot resume a download: ${cause.message}`, { file: name }, { cause });
  }

  async #changed(): Promise<undefined> {
    const { name } = this.#record;
    this.#changes++;
    await this.#restart();
    if (this.#changes > MOST_CHANGES) {
      throw new StoreError("source.changed", `\`${name}\` changed on its server ${this.#changes} times while it was downloaded.`, { file: name });
    }
  }

  /** Discards the stored bytes. The record is written at once, because it must not describe old bytes when new ones are written. */
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

  /** Whether the bytes since the last full part are unchanged. Loads those of the last block, which is continued. */
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
