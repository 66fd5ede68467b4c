// The one loaded model, and how it gets there: checked, downloaded, stored, loaded.
//
// The getters read signals, so components that use them are updated by themselves. A model is checked before anything else happens;
// the model that runs is unloaded only when its successor has passed. After a failure the last good model is loaded again.

import { signal } from "@preact/signals";
import { Engine, splitUrls, type BackendInfo, type FileSource, type LoadOptions, type ModelStore, type StoredModel } from "rullama";
import type { Preferences } from "../state/preferences";
import type { BackendSetting } from "../state/settings";
import { Rate } from "../text/rate";
import { checkModel, inOrder } from "./check";
import { forRetry, isSameStored, keeps, keepsProjector, labelOf, overwrites, type ModelChoice } from "./choice";
import { DEMO_NAME, demoChoice, isOtherDemo, isThisDemo } from "./demo";
import { projectorSource, type ProjectorChoice } from "./projector";
import { forget, remember, rememberedChoice } from "./remembered";
import { plannedStages, shareOf, type Stage, type StageName } from "./stages";

/** A model that could not be loaded. */
export interface Failure {
  error: unknown;
  /** What to load if the user tries again. */
  choice: ModelChoice;
  /** The stored files that loading failed with. */
  stored?: string[];
}

export type HostState =
  | { kind: "empty" }
  /** `on` is what will probably compute. */
  | { kind: "busy"; label: string; planned: readonly StageName[]; keeps: boolean; on: BackendInfo["kind"] }
  /** `settings` are those that the model was loaded with. */
  | { kind: "ready"; label: string; engine: Engine; choice: ModelChoice; settings: LoadSettings }
  /** `ran`: the model had been running. */
  | ({ kind: "failed"; label: string; ran: boolean } & Failure);

/** The settings that take effect when a model is loaded. */
export interface LoadSettings {
  /** Null if the engine chooses. */
  context: number | null;
  backend: BackendSetting;
}

type Ready = Extract<HostState, { kind: "ready" }>;
type Failed = Extract<HostState, { kind: "failed" }>;

export interface LoadProgress {
  stages: readonly Stage[];
  /** The fraction of the whole load that is done, from 0 to 1. It never decreases. */
  share: number;
}

/** After these errors the engine is of no use any more. */
const FATAL = ["engine.unloaded", "worker.failed", "internal"];

/** Families of errors that say that a file can never be loaded. */
const USELESS = ["gguf", "metadata", "model", "format", "tokenizer"];

/** Errors that loading the same model again would give again. */
const PERMANENT = ["memory.too_large", "context.too_large", "storage.corrupt", "storage.missing"];

const NO_PROGRESS: LoadProgress = { stages: [], share: 0 };

export class ModelHost {
  readonly store: ModelStore | undefined;
  readonly #preferences: Preferences;
  /** What `auto` means in this browser. */
  readonly #auto: BackendInfo["kind"];
  readonly #moved = signal<BackendInfo | undefined>(undefined);
  readonly #state = signal<HostState>({ kind: "empty" });
  readonly #progress = signal<LoadProgress>(NO_PROGRESS);
  readonly #checking = signal<{ label: string } | undefined>(undefined);
  readonly #failure = signal<Failure | undefined>(undefined);
  readonly #storeVersion = signal(0);
  /** The engine in memory, also while another model is downloaded. */
  #loaded: Ready | undefined;
  /** The model that ran last in this page. */
  #lastGood: ModelChoice | undefined;
  /** Loads and unloads run one after the other: two engines at once don't fit in the memory of many devices. */
  #queue: Promise<void> = Promise.resolve();
  /** The latest request, including its check. */
  #latest: Promise<void> = Promise.resolve();
  /** Aborts the latest load. */
  #controller = new AbortController();
  /** Aborts the latest check. */
  #checker = new AbortController();
  #generation = 0;
  #losses = 0;

  constructor(store: ModelStore | undefined, preferences: Preferences, auto: BackendInfo["kind"] = "gpu") {
    this.store = store;
    this.#auto = auto;
    this.#preferences = preferences;
  }

  get state(): HostState {
    return this.#state.value;
  }

  get engine(): Engine | undefined {
    const state = this.state;
    return state.kind === "ready" ? state.engine : undefined;
  }

  /** The backend that took over from one that failed, in a new object each time. */
  get moved(): BackendInfo | undefined {
    return this.#moved.value;
  }

  /** How far loading is. */
  get progress(): LoadProgress {
    return this.#progress.value;
  }

  /** The model that is being checked; the loaded model can still be used. */
  get checking(): { label: string } | undefined {
    return this.#checking.value;
  }

  /** A model that could not be loaded and left the state as it was. */
  get failure(): Failure | undefined {
    return this.#failure.value;
  }

  /** Changes whenever the stored files may have changed. */
  get storeVersion(): number {
    return this.#storeVersion.value;
  }

  /**
   * Loads a model in place of the loaded one; with other settings, if given, which are kept. Never rejects: `state` and `failure` tell
   * how it ended.
   */
  load(choice: ModelChoice, settings?: Partial<LoadSettings>): Promise<void> {
    if (settings !== undefined) {
      this.#preferences.change(settings);
    }
    this.#latest = this.#checkAndLoad(choice);
    return this.#latest;
  }

  cancel(): void {
    this.#checker.abort();
    this.#controller.abort();
  }

  /** Unloads the model and frees its memory. */
  unload(): Promise<void> {
    this.#checker.abort();
    this.#latest = this.#next(async () => {
      this.#become({ kind: "empty" });
      await this.#makeRoom();
    });
    return this.#latest;
  }

  /** Removes the message about a model that could not be loaded; the state stays. */
  dismissFailure(): void {
    this.#failure.value = undefined;
  }

  /** Removes every message about a failure. */
  dismiss(): void {
    this.dismissFailure();
    if (this.#state.peek().kind === "failed") {
      this.#become({ kind: "empty" });
    }
  }

  /** The demo model, which is always available. */
  get demo(): ModelChoice {
    return demoChoice(this.store !== undefined);
  }

  /** The model to load for the next message: the one in use, the last good one, or the demo model if no other was ever used. */
  get atHand(): ModelChoice | undefined {
    const state = this.state;
    if (state.kind === "ready" || (state.kind === "failed" && state.ran)) {
      return state.choice;
    }
    const choice = this.#lastGood ?? rememberedChoice(this.#preferences, this.store !== undefined);
    const failedForGood = state.kind === "failed" && choice && isSameStored(state.choice, choice) && isPermanent(state.error);
    return failedForGood ? undefined : choice;
  }

  /** The engine, as soon as there is one: waits for a load in progress, and loads the model at hand if there is none. */
  async ready(): Promise<Engine> {
    if (this.#state.peek().kind !== "ready") {
      await this.#settled();
    }
    const choice = this.atHand;
    if (this.#state.peek().kind !== "ready" && choice) {
      await this.load(choice);
      await this.#settled();
    }
    const state = this.#state.peek();
    if (state.kind === "ready") {
      return state.engine;
    }
    const failure = state.kind === "failed" ? state : this.#failure.peek();
    throw failure?.error ?? Object.assign(new Error("no model is loaded"), { code: "engine.unloaded" });
  }

  /** Records how a reply ended. The engine recovers from one lost device by itself; after two in a row it is loaded again. */
  noteReply(error?: { code?: unknown }): void {
    this.#losses = error?.code === "device.lost" ? this.#losses + 1 : 0;
    const over = FATAL.includes(String(error?.code)) || this.#losses > 1;
    const state = this.#state.peek();
    if (state.kind === "ready" && over) {
      const { label, choice } = state;
      this.#queue = this.#queue.then(() => this.#makeRoom());
      this.#losses = 0;
      this.#become({ kind: "failed", label, error, choice, ran: true });
    }
  }

  /** Deletes stored files, including those of the loaded model. */
  async delete(names: readonly string[]): Promise<void> {
    const state = this.#state.peek();
    const isOf = (choice: ModelChoice | undefined) => choice?.kind === "stored" && names.includes(choice.names[0] ?? "");
    if (state.kind === "ready" && isOf(state.choice)) {
      await this.unload();
    }
    for (const name of names) {
      await this.store?.delete(name);
    }
    if (isOf(this.#lastGood)) {
      this.#lastGood = undefined;
    }
    forget(this.#preferences, names);
    this.#storeVersion.value += 1;
  }

  /** Waits until nothing is checked or loaded any more, also what replaced the request that was awaited first. */
  async #settled(): Promise<void> {
    for (let latest; latest !== this.#latest; ) {
      latest = this.#latest;
      await latest;
    }
  }

  async #checkAndLoad(choice: ModelChoice): Promise<void> {
    this.#checker.abort();
    const { signal } = (this.#checker = new AbortController());
    this.#failure.value = undefined;
    // A stored model was checked when it was stored. Without a loaded model there is nothing to protect.
    if (choice.kind !== "stored" || this.#loaded) {
      this.#checking.value = { label: labelOf(choice) };
      let error: unknown;
      try {
        await checkModel(choice, { store: this.store, settings: this.#settings, signal });
      } catch (thrown) {
        error = thrown;
      }
      if (signal.aborted) {
        if (signal === this.#checker.signal) {
          this.#checking.value = undefined;
        }
        return;
      }
      this.#checking.value = undefined;
      if (error !== undefined) {
        this.#failure.value = { error, choice: forRetry(choice) };
        return;
      }
    }
    return this.#next(({ signal, latest }) => this.#replace(choice, signal, latest));
  }

  /** Loads a checked model. If that fails, the model that was loaded before is loaded again. */
  async #replace(choice: ModelChoice, signal: AbortSignal, latest: () => boolean): Promise<void> {
    const before = this.#loaded;
    const settings = this.#settings;
    let end = await this.#attempt(choice, settings, signal);
    const other = end.kind === "failed" ? await this.#otherWay(choice, end) : undefined;
    if (other && latest()) {
      end = await this.#attempt(other, settings, signal);
    }
    if (end.kind === "failed" && before && latest()) {
      const { error, choice: failed, stored } = end;
      const back = this.#loaded ?? (await this.#attempt(before.choice, before.settings, signal));
      if (back.kind === "ready") {
        this.#failure.value = { error, choice: failed, ...(stored ? { stored } : {}) };
        end = back;
      }
    }
    // A newer request sets the state itself.
    if (latest()) {
      this.#become(end);
    }
  }

  /** Runs a job when all earlier ones are done, unless a newer one was requested by then. */
  #next(work: (attempt: { signal: AbortSignal; latest: () => boolean }) => Promise<void>): Promise<void> {
    this.#controller.abort();
    const controller = new AbortController();
    const generation = ++this.#generation;
    const latest = () => generation === this.#generation;
    this.#controller = controller;
    this.#queue = this.#queue.then(async () => {
      if (latest()) {
        await work({ signal: controller.signal, latest });
      }
    });
    // A failure here is a bug; it must not block later jobs.
    this.#queue = this.#queue.catch(reportError);
    return this.#queue;
  }

  /** Unloads the engine in memory. */
  async #makeRoom(): Promise<void> {
    const engine = this.#loaded?.engine;
    this.#loaded = undefined;
    await unloaded(engine);
  }

  /** Downloads, stores and loads a model. Never rejects. */
  async #attempt(choice: ModelChoice, settings: LoadSettings, signal: AbortSignal): Promise<Exclude<HostState, { kind: "busy" }>> {
    const label = labelOf(choice);
    let here = choice;
    this.#progress.value = NO_PROGRESS;
    const on = settings.backend === "auto" ? this.#auto : settings.backend;
    this.#become({ kind: "busy", label, planned: plannedStages(choice, on), keeps: keeps(choice), on });
    try {
      if (keeps(choice)) {
        if (this.#loaded && overwrites(choice, this.#loaded.choice)) {
          // The engine keeps its file open.
          await this.#makeRoom();
        }
        here = await this.#keep(choice, signal);
      }
      await this.#makeRoom();
      const engine = await this.#open(here, settings, signal);
      if (signal.aborted) {
        // It was too late to stop it, but it isn't wanted any more.
        await unloaded(engine);
        return { kind: "empty" };
      }
      this.#losses = 0;
      this.#lastGood = here;
      remember(this.#preferences, here);
      if (here.kind === "stored" && here.names[0] === DEMO_NAME) {
        void this.#deleteOtherDemos();
      }
      this.#loaded = { kind: "ready", label, engine, choice: here, settings };
      return this.#loaded;
    } catch (error) {
      if (codeOf(error) === "cancelled") {
        return this.#loaded ?? { kind: "empty" };
      }
      let stored = here.kind === "stored" ? here.names : undefined;
      if (stored && keeps(choice) && isUseless(error)) {
        await this.#discard(keptBy(choice, here));
        stored = choice.kind === "stored" ? stored : undefined;
      }
      return { kind: "failed", label, error, choice: forRetry(choice), ran: false, ...(stored ? { stored } : {}) };
    }
  }

  /** Another way to the demo model if it can't be stored or downloaded. */
  async #otherWay(choice: ModelChoice, { error }: Failed): Promise<ModelChoice | undefined> {
    if (choice.kind !== "address" || !choice.keep || !isThisDemo(choice)) {
      return undefined;
    }
    switch (codeOf(error)) {
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

  /** Deletes the demo models of other versions. A file that another tab still reads is deleted the next time. */
  async #deleteOtherDemos(): Promise<void> {
    const others = await this.#otherDemos();
    if (others.length > 0) {
      await this.#discard(others.map(({ name }) => name));
    }
  }

  /** Deletes stored files that can't be used. A file that can't be deleted now stays in the list, where the user can delete it. */
  async #discard(names: readonly string[]): Promise<void> {
    for (const name of names) {
      await this.store?.delete(name).catch(() => {});
    }
    this.#storeVersion.value += 1;
  }

  /** Stores the chosen model; gives the choice of the stored files. */
  async #keep(choice: ModelChoice, signal: AbortSignal): Promise<ModelChoice> {
    const store = this.store as ModelStore;
    const stored: StoredModel[] = [];
    if (choice.kind === "address") {
      const addresses = splitUrls(new URL(choice.url, location.href).href);
      const { name, sha256, bytes, replace } = choice;
      const described = addresses.length === 1 ? { name, sha256, bytes } : {};
      for (const url of addresses) {
        stored.push(await store.download(url, { ...defined({ ...described, replace }), signal, onProgress: (event) => this.#note("fetch", event) }));
      }
    } else if (choice.kind === "files") {
      for (const file of choice.files) {
        stored.push(await store.import(file, { signal, replace: true, onProgress: (event) => this.#note("import", event) }));
      }
    }
    const names = choice.kind === "stored" ? choice.names : stored.map(({ name }) => name);
    const projector = choice.projector && (await this.#keepProjector(choice.projector, store, signal));
    return { kind: "stored", names, ...(projector ? { projector } : {}) };
  }

  async #keepProjector(projector: ProjectorChoice, store: ModelStore, signal: AbortSignal): Promise<ProjectorChoice> {
    if ("url" in projector) {
      const url = new URL(projector.url, location.href).href;
      return { stored: (await store.download(url, { signal, onProgress: (event) => this.#note("fetch", event) })).name };
    }
    if ("file" in projector) {
      return { stored: (await store.import(projector.file, { signal, replace: true, onProgress: (event) => this.#note("import", event) })).name };
    }
    return projector;
  }

  #open(choice: ModelChoice, { context, backend }: LoadSettings, signal: AbortSignal): Promise<Engine> {
    const options: LoadOptions = {
      backend,
      // Without a context the engine chooses one: less on devices with little memory.
      ...(context === null ? {} : { context }),
      ...(choice.projector ? { projector: projectorSource(choice.projector) } : {}),
      signal,
      onBackend: (other) => this.#changeBackend(other),
      onProgress: (event) => this.#note(event.status, event),
    };
    return Engine.load(this.#sources(choice), options);
  }

  get #settings(): LoadSettings {
    const { context, backend } = this.#preferences.settings;
    return { context, backend };
  }

  /** The engine now says something else of itself, so that what shows it has to be rendered again. */
  #changeBackend(backend: BackendInfo): void {
    const state = this.#state.peek();
    if (state.kind === "ready" && state === this.#loaded) {
      this.#loaded = { ...state };
      this.#become(this.#loaded);
      this.#moved.value = { ...backend };
    }
  }

  #sources(choice: ModelChoice): FileSource[] | string {
    switch (choice.kind) {
      case "address":
        return choice.url;
      case "files":
        return inOrder(choice.files);
      case "stored":
        if (!this.store) {
          throw Object.assign(new Error("the browser's storage cannot be used"), { code: "storage.unavailable" });
        }
        // While the engine reads a stored file, no tab can delete it.
        return choice.names.map((stored) => ({ stored }));
    }
  }

  #note(name: StageName, { loaded, total = 0 }: { loaded: number; total?: number }): void {
    const state = this.#state.peek();
    // On the CPU nothing is copied anywhere.
    if (state.kind !== "busy" || (state.on === "cpu" && name === "upload")) {
      return;
    }
    const { stages, share } = this.#progress.peek();
    const rate = stages.find((stage) => stage.name === name)?.rate ?? new Rate();
    rate.add(loaded, performance.now());
    const stage: Stage = { name, loaded, total, rate };
    const next = stages.some((one) => one.name === name) ? stages.map((one) => (one.name === name ? stage : one)) : [...stages, stage];
    // The next file of a split model starts at 0 again, and so does a stage that was not planned.
    this.#progress.value = { stages: next, share: Math.max(share, shareOf(next, state.planned)) };
  }

  #become(state: HostState): void {
    this.#state.value = state;
    this.#storeVersion.value += 1;
  }
}

function codeOf(error: unknown): string {
  return String((error as { code?: unknown } | undefined)?.code);
}

function isUseless(error: unknown): boolean {
  return USELESS.includes(codeOf(error).split(".")[0] as string);
}

/** The files that were stored for this load. */
function keptBy(choice: ModelChoice, here: ModelChoice): string[] {
  const model = choice.kind !== "stored" && here.kind === "stored" ? here.names : [];
  const { projector } = here;
  return keepsProjector(choice) && projector && "stored" in projector ? [...model, projector.stored] : model;
}

function isPermanent(error: unknown): boolean {
  return isUseless(error) || PERMANENT.includes(codeOf(error));
}

/** An engine that can't be unloaded is gone already. */
async function unloaded(engine: Engine | undefined): Promise<void> {
  await engine?.unload().catch(() => {});
}

function defined<T extends object>(object: T): Partial<T> {
  return Object.fromEntries(Object.entries(object).filter(([, value]) => value !== undefined)) as Partial<T>;
}
