// The one model that is loaded, and the way there: fetched, stored, read, ready. Views follow `changed`.

import { Engine, splitUrls, type FileSource, type LoadOptions, type ModelStore, type StoredModel } from "rullama";
import { Emitter } from "../state/emitter";
import type { Preferences } from "../state/preferences";
import { Rate } from "../text/rate";
import { DEMO_NAME, demoChoice, isOtherDemo, isThisDemo } from "./demo";
import { shortName } from "./parts";
import { forget, remember, rememberedChoice } from "./remembered";
import { plannedStages, shareOf, type Stage, type StageName } from "./stages";

/** What the user chose. */
export type ModelChoice =
  | { kind: "stored"; names: string[] }
  | { kind: "address"; url: string; keep: boolean; name?: string; sha256?: string; bytes?: number; replace?: boolean }
  | { kind: "files"; files: File[]; keep: boolean };

/** A loading that failed. */
export interface Failure {
  error: unknown;
  /** What to load when somebody tries again. */
  choice: ModelChoice;
  /** The stored files that it failed with. */
  stored?: string[];
}

export type HostState =
  | { kind: "empty" }
  /** `share` of all of it is done, from 0 to 1; it never becomes less. */
  | { kind: "busy"; label: string; stages: Stage[]; planned: readonly StageName[]; share: number; keeps: boolean }
  /** `context` is what was asked for; null if nothing was. `failure` is what was to take this one's place and did not. */
  | { kind: "ready"; label: string; engine: Engine; choice: ModelChoice; context: number | null; failure?: Failure }
  | ({ kind: "failed"; label: string } & Failure);

type Ready = Extract<HostState, { kind: "ready" }>;

/** After these, what was loaded is of no use any more. */
const FATAL = ["engine.unloaded", "worker.failed", "internal"];

/** Families of errors that are the file's fault, or its server's: what ran before still runs. */
const OF_THE_FILE = ["source", "storage", "gguf", "metadata", "model", "format", "tokenizer"];

export class ModelHost {
  /** The state became another one, or stored files went that nobody asked to delete. */
  readonly changed = new Emitter();
  /** Something under way got further. */
  readonly progressed = new Emitter();
  readonly store: ModelStore | undefined;
  readonly #preferences: Preferences;
  #state: HostState = { kind: "empty" };
  /** What is loaded, also while something else is fetched that may take its place. */
  #loaded: Ready | undefined;
  /** All that loads and unloads, one after the other: two engines at once would not fit the memory of many devices. */
  #queue: Promise<void> = Promise.resolve();
  /** Stops what was wanted last, which makes it outdated if something else is wanted instead. */
  #controller = new AbortController();
  #generation = 0;
  #losses = 0;

  constructor(store: ModelStore | undefined, preferences: Preferences) {
    this.store = store;
    this.#preferences = preferences;
  }

  get state(): HostState {
    return this.#state;
  }

  get engine(): Engine | undefined {
    return this.#state.kind === "ready" ? this.#state.engine : undefined;
  }

  /**
   * Loads a model in place of what is loaded, which stays until the other one is here; with another context size, if one is
   * given, which then becomes the setting. Fails only by the state: whoever follows it knows.
   */
  load(choice: ModelChoice, context?: number): Promise<void> {
    if (context !== undefined) {
      this.#preferences.change({ context });
    }
    return this.#next(async (attempt) => {
      const before = this.#loaded;
      let end = await this.#attempt(choice, attempt.signal);
      const other = await this.#otherWay(choice, end);
      if (other && attempt.latest()) {
        end = await this.#attempt(other, attempt.signal);
      }
      if (end.kind === "failed" && before && before.choice !== choice && attempt.latest() && isOfTheFile(end.error)) {
        // It came far enough for what was loaded to make room, and is of no use.
        const { error, choice: failed, stored } = end;
        const back = await this.#attempt(before.choice, attempt.signal);
        end = back.kind === "ready" ? { ...back, failure: { error, choice: failed, ...(stored ? { stored } : {}) } } : end;
      }
      // Whoever came after this has the state now, or will have it.
      if (attempt.latest()) {
        this.#become(end);
      }
    });
  }

  cancel(): void {
    this.#controller.abort();
  }

  /** Gives the memory back. */
  unload(): Promise<void> {
    return this.#next(async () => {
      this.#become({ kind: "empty" });
      await this.#makeRoom();
    });
  }

  /** Nobody needs to be told of a failure any more. */
  dismiss(): void {
    if (this.#state.kind === "failed") {
      this.#become({ kind: "empty" });
    } else if (this.#state.kind === "ready" && this.#state.failure) {
      const { failure: _, ...rest } = this.#state;
      this.#become(rest);
    }
  }

  /** The demo model, which is always to be had. */
  get demo(): ModelChoice {
    return demoChoice(this.store !== undefined);
  }

  /** What could be loaded without asking anybody: what failed before, what was used last, or the demo model if nothing ever was. */
  get atHand(): ModelChoice | undefined {
    if (this.#state.kind === "failed" || this.#state.kind === "ready") {
      return this.#state.choice;
    }
    return rememberedChoice(this.#preferences, this.store !== undefined);
  }

  /** The engine, when there is one: waits for one that is on its way, and brings back one that went. */
  async ready(): Promise<Engine> {
    // What is on its way may be replaced by something else that is.
    for (let queue; queue !== this.#queue; ) {
      queue = this.#queue;
      await queue;
    }
    if (this.#state.kind !== "ready" && this.atHand) {
      await this.load(this.atHand);
    }
    // What was awaited changed it, which the compiler cannot know.
    const state = this.#state as HostState;
    if (state.kind === "ready") {
      return state.engine;
    }
    throw state.kind === "failed" ? state.error : Object.assign(new Error("no model is loaded"), { code: "engine.unloaded" });
  }

  /** Learns how a reply ended. An engine comes back from one lost device by itself; from two it is loaded again. */
  noteReply(error?: { code?: unknown }): void {
    this.#losses = error?.code === "device.lost" ? this.#losses + 1 : 0;
    const over = FATAL.includes(String(error?.code)) || this.#losses > 1;
    if (this.#state.kind === "ready" && over) {
      const { label, choice } = this.#state;
      this.#queue = this.#queue.then(() => this.#makeRoom());
      this.#losses = 0;
      this.#become({ kind: "failed", label, error, choice });
    }
  }

  /** Does something when all before it is done, unless something else is wanted by then. */
  #next(work: (attempt: { signal: AbortSignal; latest: () => boolean }) => Promise<void>): Promise<void> {
    this.cancel();
    const controller = new AbortController();
    const generation = ++this.#generation;
    const latest = () => generation === this.#generation;
    this.#controller = controller;
    this.#queue = this.#queue.then(async () => {
      if (latest()) {
        await work({ signal: controller.signal, latest });
      }
    });
    // What fails here is a mistake of ours, and must not keep anything after it from running.
    this.#queue = this.#queue.catch(reportError);
    return this.#queue;
  }

  /** Gives up what is loaded. */
  async #makeRoom(): Promise<void> {
    const engine = this.#loaded?.engine;
    this.#loaded = undefined;
    await unloaded(engine);
  }

  /** Loads. Fails never; how it ended, the state tells. */
  async #attempt(choice: ModelChoice, signal: AbortSignal): Promise<Exclude<HostState, { kind: "busy" }>> {
    const label = labelOf(choice);
    const { context } = this.#preferences.settings;
    const keeps = choice.kind !== "stored" && choice.keep;
    let here = choice;
    this.#become({ kind: "busy", label, stages: [], planned: plannedStages(choice), share: 0, keeps });
    try {
      if (keeps) {
        if (this.#loaded && overwrites(choice, this.#loaded.choice)) {
          // The engine holds on to its file.
          await this.#makeRoom();
        }
        here = await this.#keep(choice, signal);
      }
      // Two engines at once would not fit the memory of many devices.
      await this.#makeRoom();
      const engine = await this.#open(here, context, signal);
      if (signal.aborted) {
        // Too late to be stopped, but nobody wants it any more.
        await unloaded(engine);
        return { kind: "empty" };
      }
      this.#losses = 0;
      remember(this.#preferences, here);
      if (here.kind === "stored" && here.names[0] === DEMO_NAME) {
        void this.#deleteOtherDemos();
      }
      this.#loaded = { kind: "ready", label, engine, choice: here, context };
      return this.#loaded;
    } catch (error) {
      if (codeOf(error) === "cancelled") {
        return this.#loaded ?? { kind: "empty" };
      }
      const stored = here.kind === "stored" ? here.names : undefined;
      if (keeps && stored && codeOf(error) === "gguf.not_gguf") {
        // A page that asks to sign in, perhaps. Nobody would want to use it again.
        await this.#forget(stored);
      }
      const failure: Failure = { error, choice: again(choice), ...(stored ? { stored } : {}) };
      return this.#loaded ? { ...this.#loaded, failure } : { kind: "failed", label, ...failure };
    }
  }

  /** Deletes stored files, also those of the model that runs. */
  async delete(names: readonly string[]): Promise<void> {
    const { state } = this;
    if (state.kind === "ready" && state.choice.kind === "stored" && names.includes(state.choice.names[0] ?? "")) {
      await this.unload();
    }
    for (const name of names) {
      await this.store?.delete(name);
    }
    forget(this.#preferences, names);
  }

  /** What to load where the demo model could not be kept: it is to answer wherever it can. */
  async #otherWay(choice: ModelChoice, end: HostState): Promise<ModelChoice | undefined> {
    const failure = end.kind === "failed" ? end : end.kind === "ready" ? end.failure : undefined;
    if (!failure || choice.kind !== "address" || !choice.keep || !isThisDemo(choice)) {
      return undefined;
    }
    switch (codeOf(failure.error)) {
      case "storage.quota":
      case "storage.unavailable":
        return { ...choice, keep: false };
      case "source.connection": {
        const other = (await this.#otherDemos()).find(({ complete }) => complete);
        return other && { kind: "stored", names: [other.name] };
      }
      default:
        return undefined;
    }
  }

  /** The stored demo models of other versions of the app. */
  async #otherDemos(): Promise<StoredModel[]> {
    const stored = (await this.store?.list().catch(() => [])) ?? [];
    return stored.filter(isOtherDemo);
  }

  /** Makes room where this version's demo model is stored. A file that another tab still reads goes the next time. */
  async #deleteOtherDemos(): Promise<void> {
    const others = await this.#otherDemos();
    if (others.length > 0) {
      await this.#forget(others.map(({ name }) => name));
      this.changed.emit();
    }
  }

  /** Deletes stored files that are of no use. What cannot be deleted now stays in the list, where it can be later. */
  async #forget(names: readonly string[]): Promise<void> {
    for (const name of names) {
      await this.store?.delete(name).catch(() => {});
    }
  }

  /** Stores what was chosen; gives what is stored. */
  async #keep(choice: ModelChoice, signal: AbortSignal): Promise<ModelChoice> {
    const store = this.store as ModelStore;
    const stored: StoredModel[] = [];
    if (choice.kind === "address") {
      const addresses = splitUrls(new URL(choice.url, location.href).href);
      const { name, sha256, bytes, replace } = choice;
      const described = addresses.length === 1 ? { name, sha256, bytes } : {};
      for (const url of addresses) {
        stored.push(await store.download(url, { ...defined({ ...described, replace }), signal, onProgress: (event) => this.#progress("fetch", event) }));
      }
    } else if (choice.kind === "files") {
      for (const file of choice.files) {
        stored.push(await store.import(file, { signal, replace: true, onProgress: (event) => this.#progress("import", event) }));
      }
    }
    return { kind: "stored", names: stored.map(({ name }) => name) };
  }

  #open(choice: ModelChoice, context: number | null, signal: AbortSignal): Promise<Engine> {
    const options: LoadOptions = {
      // Left out, the engine chooses: less on devices with little memory.
      ...(context === null ? {} : { context }),
      signal,
      onProgress: (event) => this.#progress(event.status, event),
    };
    return Engine.load(this.#sources(choice), options);
  }

  #sources(choice: ModelChoice): FileSource[] | string {
    switch (choice.kind) {
      case "address":
        return choice.url;
      case "files":
        return [...choice.files].sort((a, b) => (a.name < b.name ? -1 : 1));
      case "stored":
        if (!this.store) {
          throw Object.assign(new Error("the browser's storage cannot be used"), { code: "storage.unavailable" });
        }
        // While the engine reads a file, no tab can delete it.
        return choice.names.map((stored) => ({ stored }));
    }
  }

  #progress(name: StageName, { loaded, total }: { loaded: number; total?: number }): void {
    if (this.#state.kind !== "busy") {
      return;
    }
    const { stages } = this.#state;
    let stage = stages.find((one) => one.name === name);
    if (!stage) {
      stage = { name, loaded, total: total ?? 0, rate: new Rate() };
      stages.push(stage);
    }
    stage.loaded = loaded;
    stage.total = total ?? 0;
    stage.rate.add(loaded, performance.now());
    // A further file of the same model begins at nothing again, and so do stages that nobody knew of.
    this.#state.share = Math.max(this.#state.share, shareOf(stages, this.#state.planned));
    this.progressed.emit();
  }

  #become(state: HostState): void {
    this.#state = state;
    this.changed.emit();
  }
}

export function labelOf(choice: ModelChoice): string {
  switch (choice.kind) {
    case "stored":
      return shortName(choice.names[0] ?? "");
    case "address":
      return shortName(choice.name ?? lastPart(choice.url));
    case "files":
      return shortName(choice.files[0]?.name ?? "");
  }
}

function lastPart(url: string): string {
  try {
    return new URL(url, location.href).pathname.split("/").pop() || url;
  } catch {
    // It is no address, which loading it will tell.
    return url;
  }
}

/** What to load when somebody tries again. What was to be replaced is gone by then, and its successor can be resumed. */
function again(choice: ModelChoice): ModelChoice {
  if (choice.kind !== "address") {
    return choice;
  }
  const { replace: _, ...rest } = choice;
  return rest;
}

/** Whether storing what was chosen writes over a file of what is loaded. */
function overwrites(choice: ModelChoice, loaded: ModelChoice): boolean {
  if (loaded.kind !== "stored") {
    return false;
  }
  return choice.kind === "files" ? choice.files.some(({ name }) => loaded.names.includes(name)) : choice.kind === "address" && choice.replace === true;
}

function codeOf(error: unknown): string {
  return String((error as { code?: unknown } | undefined)?.code);
}

function isOfTheFile(error: unknown): boolean {
  return OF_THE_FILE.includes(codeOf(error).split(".")[0] as string);
}

/** An engine that cannot even be unloaded is gone already. */
async function unloaded(engine: Engine | undefined): Promise<void> {
  await engine?.unload().catch(() => {});
}

function defined<T extends object>(object: T): Partial<T> {
  return Object.fromEntries(Object.entries(object).filter(([, value]) => value !== undefined)) as Partial<T>;
}
