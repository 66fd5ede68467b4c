// The values that programs pass to an engine and get back from it.

/** The author of a message. Any other role is refused with `option.out_of_range`. */
export type Role = "system" | "developer" | "user" | "assistant" | "tool";

/** A call of a tool by the model. */
export interface ToolCall {
  id?: string;
  function: {
    /** Position of this call among the calls of its reply, counted from 0. */
    index?: number;
    name: string;
    arguments: Record<string, unknown>;
  };
}

/**
 * An image: a file of a format that the browser reads (JPEG, PNG, WebP, GIF, …), its URL or data URL, or pixels. Turned upright as its
 * file says. Where pixels are transparent, the model sees the colour that they have nevertheless, as in Hugging Face transformers.
 */
export type ImageSource = Blob | File | URL | string | ImageBitmap | ImageData | HTMLCanvasElement | OffscreenCanvas;

/**
 * A sound: a file of a format that the browser reads (WAV, MP3, …), its URL or data URL, or samples. A `Float32Array` is mono at
 * 16 kHz, with values from −1 to 1. Other sounds are resampled, and their channels are averaged.
 */
export type SoundSource = Blob | File | URL | string | AudioBuffer | Float32Array;

/** How many tokens an image may take. More show more detail, and take longer. */
export type ImageBudget = 70 | 140 | 280 | 560 | 1120;

/** A part of a message's content, as in OpenAI's API. */
export type ContentPart =
  | { type: "text"; text: string }
  | {
      type: "image_url";
      image_url: {
        /** A URL or a data URL. */
        url: string;
        /** `low` is a budget of 70 tokens, `high` one of 1120, `auto` that of the option. Default `auto`. */
        detail?: "auto" | "low" | "high";
      };
    }
  | {
      type: "input_audio";
      input_audio: {
        /** The file as base64. */
        data: string;
        /** Such as `wav` or `mp3`. The browser recognises formats itself. */
        format?: string;
      };
    };

/** One message of a conversation. */
export interface Message {
  role: Role;
  /** A text, or OpenAI's content parts. The texts of parts are joined; images and sounds come before them. */
  content?: string | ContentPart[];
  /** The reasoning that the model wrote before its answer. */
  thought?: string;
  /** The tools that the model called. */
  toolCalls?: ToolCall[];
  /** In a message with the role `tool`: the name of the tool whose result this is. */
  toolName?: string;
  /** In a message with the role `tool`: the `id` of the call whose result this is. */
  toolCallId?: string;
  /** Images, which the model sees before the text. A model that sees none refuses them with `model.no_images`. */
  images?: ImageSource[];
  /** Sounds, which the model hears after the images and before the text. A model that hears none refuses them with `model.no_audio`. */
  audio?: SoundSource[];
}

/** A tool that the model may call. Its parameters are a JSON schema. */
export interface Tool {
  type?: "function";
  function: { name: string; description?: string; parameters?: Record<string, unknown> };
}

/** Sampling, and when a reply stops. The defaults are Ollama's for Gemma 4. An unknown option is an error. */
export interface GenerateOptions {
  /** The maximum number of tokens to generate. Default: as many as the context has room for. */
  maxTokens?: number;
  /** The reply stops before the first of these texts that appears in it. */
  stop?: string | string[];
  /** 0 always picks the most probable token. Default 1. */
  temperature?: number;
  /** Samples from this many of the most probable tokens; 0 turns this off. Default 64. */
  topK?: number;
  /** Samples from the most probable tokens whose probabilities add up to this; 1 turns this off. Default 0.95. */
  topP?: number;
  /** Drops tokens whose probability is below this fraction of the most probable token's; 0 turns this off. Default 0. */
  minP?: number;
  /** Locally typical sampling: keeps the most typical tokens up to this total probability; 1 turns this off. Default 1. */
  typicalP?: number;
  /** Above 1, repeated tokens become less likely. Default 1. */
  repeatPenalty?: number;
  /** How many of the latest tokens the penalties consider; −1 is all. Default 64. */
  repeatLastN?: number;
  /** Lowers the logit of a token by this for each time it has appeared. Default 0. */
  frequencyPenalty?: number;
  /** Lowers the logit of a token by this if it has appeared. Default 0. */
  presencePenalty?: number;
  /**
   * Seeds the random numbers: the same prompt, options and seed give the same reply. Default, or −1: a new seed for each reply,
   * reported in {@link ReplyResult.seed}.
   */
  seed?: number;
  /** Values added to the logits of tokens, by token id; `false` bans a token. */
  logitBias?: Record<number, number | false>;
  /** Reports the log-probability of each token, and of this many of the most probable alternatives. */
  topLogprobs?: number;
  /** Continues after tokens that end a reply. For benchmarks. */
  ignoreEos?: boolean;
  /** Cancels the reply: its loop and its `result()` then reject with the code `cancelled`. */
  signal?: AbortSignal;
}

/** Options of a reply to a conversation. */
export interface ChatOptions extends GenerateOptions {
  /** Whether the model reasons before it answers. Default `true`. */
  think?: boolean;
  /** Tools that the model may call. */
  tools?: Tool[];
  /** How many tokens each image may take. Default: {@link MediaInfo.defaultImageBudget}. */
  imageBudget?: ImageBudget;
  /** Called while images and sounds are encoded, before the reply begins. One that was encoded before is done at once. */
  onEncode?: (progress: EncodeProgress) => void;
}

/** Progress of encoding an image or a sound. */
export interface EncodeProgress {
  medium: "image" | "audio";
  /** The position of this image or sound among those of the conversation, in the order in which the model reads them, from 0. */
  index: number;
  /** The number of images and sounds of the conversation. */
  count: number;
  /** The fraction of this image or sound that is done, from 0 to exactly 1. */
  fraction: number;
}

/** A token with its log-probability. */
export interface TokenLogprob {
  id: number;
  /** Its text. Bytes that are not a complete character appear as U+FFFD. */
  token: string;
  bytes: number[];
  logprob: number;
}

/** A generated token with its log-probability and those of the most probable alternatives. */
export interface ChosenLogprob extends TokenLogprob {
  top: TokenLogprob[];
}

/** The next part of a reply. */
export interface Delta {
  /** More of the answer. Empty if this delta carries something else. */
  text: string;
  /** More of the reasoning. */
  thought?: string;
  /** Complete tool calls. */
  toolCalls?: ToolCall[];
  /** The tokens generated since the previous delta. */
  ids: number[];
  /** Their log-probabilities, if `topLogprobs` was set. */
  logprobs?: ChosenLogprob[];
}

/** A whole reply, or the part of it that was written before it was cancelled. */
export interface ReplyResult {
  text: string;
  thought: string;
  toolCalls: ToolCall[];
  /** All generated tokens, including the one that ended the reply. */
  ids: number[];
  logprobs?: ChosenLogprob[];
  /**
   * Why the reply ended. `stop`: the model or a stop text ended it. `length`: `maxTokens` or the context was reached.
   * `cancelled`: the loop was left or {@link Reply.cancel} was called, and this is what had been written by then.
   */
  finishReason: "stop" | "length" | "cancelled" | null;
  /** The seed that was used; −1 if the reply was cancelled before its first token. */
  seed: number;
  usage: Usage;
  timings: Timings;
}

export interface Usage {
  promptTokens: number;
  /** Prompt tokens that were not computed again because the session had read them before. */
  reusedTokens: number;
  generatedTokens: number;
}

export interface Timings {
  /** Milliseconds from the start of the reply to its first token. */
  promptMs: number;
  /** Milliseconds from the first token to the end, without the time that the reply was paused because the page was hidden. */
  generateMs: number;
}

/** Progress of a load. */
export interface ProgressEvent {
  /**
   * The current stage. `download`: bytes from a server. `verify`: stored bytes that were read and checked. `upload`: weights copied
   * to the GPU. `compile`: kernels compiled and tested. Stages overlap: a model that is not stored is downloaded while it is uploaded.
   */
  status: "download" | "verify" | "upload" | "compile";
  /** The file that this event is about. */
  file: string;
  /** Bytes done in this stage; for `compile`, the number of steps. */
  loaded: number;
  total: number;
  /** The fraction of this stage that is done, from 0 to 1. */
  progress: number;
  /** The fraction of the whole load that is done, for a progress bar: it never goes down, and the last event of a load has exactly 1. */
  overall: number;
}

/** A GPU and its limits, as the browser reports them. */
export interface GpuInfo {
  /** The name that the browser reports, which may be empty. */
  name: string;
  /** The smallest and largest subgroup size, if subgroups are used. */
  subgroups: [number, number] | null;
  /** Whether shaders can compute in 16-bit floating point. */
  halfPrecision: boolean;
  /** Whether the GPU can time single dispatches. */
  timestamps: boolean;
  /** The largest storage buffer binding, in bytes. */
  largestBinding: number;
  /** The largest buffer, in bytes. */
  largestBuffer: number;
  /** Bytes of workgroup memory. */
  workgroupMemory: number;
}

/** The result of {@link examine}. */
export interface DeviceReport {
  gpu: GpuInfo;
  /** For each family of kernels, whether it computed known cases correctly. */
  selfTests: { name: string; passed: boolean; detail: string }[];
  /** GPU features that models will not use because they failed a self-test. */
  fallbacks: string[];
  /** Measured memory bandwidth, in bytes per second. */
  bandwidth: number;
}

/** A kernel that a model runs. */
export interface KernelUse {
  step: "decode" | "prompt";
  /** Tokens in the step. */
  rows: number;
  kernel: string;
  /** Dispatches of this kernel in one step. */
  count: number;
}

/** Options of {@link examine}. */
export interface ExamineOptions extends Pick<LoadOptions, "worker" | "wasm" | "floor" | "subgroups" | "signal"> {}

/** Options of {@link inspect}: those of {@link Engine.load} that decide whether a model can be loaded. */
export interface InspectOptions
  extends Pick<
    LoadOptions,
    | "backend"
    | "context"
    | "projector"
    | "keepTowers"
    | "kv"
    | "memory"
    | "residency"
    | "tight"
    | "worker"
    | "wasm"
    | "cpuWasm"
    | "cpuThreadsWasm"
    | "threads"
    | "headers"
    | "floor"
    | "subgroups"
    | "signal"
  > {}

/** A tensor whose format has no kernels and that is converted when the model is loaded. */
export interface Conversion {
  tensor: string;
  from: string;
  to: string;
}

/** The result of {@link inspect}: a model that can be loaded here, described from its header. */
export interface ModelReport {
  /** The name in the model's metadata; if it has none, the name of its file. */
  name: string;
  architecture: string;
  parameters: number;
  /** The quantisation, such as `Q4_K_M`. */
  format: string;
  /** Size of the model's file, or of all its parts. */
  bytes: number;
  /** The context length that the model was trained for, in tokens. */
  contextLength: number;
  /** The context that {@link Engine.load} would use with the same options, in tokens. */
  context: number;
  /** The largest context that fits the memory limit and the GPU's limits, up to `contextLength`. */
  largestContext: number;
  /** The images and sounds that it takes. */
  media: MediaInfo;
  /** What would compute it, and why. */
  backend: BackendInfo;
  /** Where the weights would live: `cpu`, if the CPU computes; otherwise see {@link LoadOptions.residency}. */
  residency: "gpu" | "rows" | "paged" | "cpu";
  /** GPU memory in bytes; if the CPU computes, WebAssembly memory. */
  memory: {
    /** What the model and one conversation of `context` tokens take. */
    needed: number;
    /** The limit set by the option `memory`; null without one, because browsers do not report how much memory a GPU has. */
    available: number | null;
    weights: number;
    caches: number;
    scratch: number;
    staging: number;
  };
  conversions: Conversion[];
  /** Oddities of the file that do not prevent it from running: unknown tensors or keys, and missing ones that have a default. */
  warnings: string[];
}

/** What computes a model, and why. */
export interface BackendInfo {
  kind: "gpu" | "cpu";
  /** A sentence for people. */
  reason: string;
  /** Of a loaded model on the CPU: how many threads compute. */
  threads?: number;
}

/** The images and sounds that a model takes. */
export interface MediaInfo {
  /** Whether messages may have images. */
  image: boolean;
  /** Whether messages may have sounds. */
  audio: boolean;
  /** The values of {@link ChatOptions.imageBudget} that the model was trained with; empty if it takes no images. */
  imageBudgets: ImageBudget[];
  /** The budget without that option. */
  defaultImageBudget: ImageBudget;
  /** Seconds of the longest sound. */
  longestSound: number;
}

/** A loaded model, and what it runs on. */
export interface EngineInfo {
  name: string;
  architecture: string;
  parameters: number;
  /** Size of the model's file. */
  bytes: number;
  /** The maximum number of tokens in a conversation. */
  context: number;
  /** The context length that the model was trained for. */
  trainedContext: number;
  vocabulary: number;
  layers: number;
  /** The images and sounds that it takes. */
  media: MediaInfo;
  backend: BackendInfo;
  /** The GPU; null if the CPU computes. */
  gpu: GpuInfo | null;
  /** Where the weights live: `cpu`, if the CPU computes; otherwise see {@link LoadOptions.residency}. */
  residency: "gpu" | "rows" | "paged" | "cpu";
  /** Bytes of WebAssembly memory. It never shrinks. */
  wasmMemory: number;
  /** Bytes of GPU memory for the model and one conversation; if the CPU computes, of WebAssembly memory. */
  memory: { weights: number; caches: number; scratch: number; staging: number; total: number };
  conversions: Conversion[];
  /** GPU features that are not used because they failed the self-test. */
  fallbacks: string[];
  /** Oddities of the file that do not prevent it from running: unknown tensors or keys, and missing ones that have a default. */
  warnings: string[];
}

/** Your own reader of a model's bytes. */
export interface CustomSource {
  readonly length: number;
  readonly name?: string;
  read(offset: number, length: number): Uint8Array | ArrayBuffer | Promise<Uint8Array | ArrayBuffer>;
}

/**
 * One file of a model: a URL, a `File` or `Blob`, the name of a file in the package's store, the path of a file in the origin private
 * file system, bytes, or your own reader. A Hugging Face page URL (`/blob/`) is read as the file itself (`/resolve/`).
 */
export type FileSource =
  | string
  | URL
  | Blob
  | { stored: string }
  | { opfs: string }
  | ArrayBuffer
  | Uint8Array
  | CustomSource;

/** A model: one file, or all parts of a split model in order. The URL of one part stands for all of them. */
export type ModelSource = FileSource | readonly FileSource[];

/** A model's projector: the file with what encodes images and sounds, where that is not in the model's own file. */
export type ProjectorSource = FileSource;

/** How a downloaded model is stored. */
export interface StoreOptions {
  /**
   * The name to store it under, for a model of one file. Default: the last part of the URL's path; if a file from another URL has
   * that name, with the host and folders added in parentheses.
   */
  name?: string;
  /** The SHA-256 that the file must have, as 64 hex digits, for a model of one file. */
  sha256?: string;
  /** Asks the server whether the file has changed and downloads it again if so. The stored file is kept until the new one is complete. */
  replace?: boolean;
}

/** Options of {@link Engine.load}. */
export interface LoadOptions {
  /**
   * What computes. `gpu`: WebGPU. `cpu`: WebAssembly, which works in every browser. `auto`: the GPU, unless there is none, the browser only
   * emulates one, it fails the self-test, or it stops working twice within a minute; then the CPU. {@link EngineInfo.backend} tells which,
   * and why. A model that the GPU has no memory for is an error, and not moved. Default `auto`.
   */
  backend?: "auto" | "gpu" | "cpu";
  /** The maximum number of tokens in a conversation. Default: 4096, or the model's own context length if that is smaller. */
  context?: number;
  /**
   * The projector of a model whose images and sounds are encoded by weights in a file of their own, such as `mmproj-….gguf`. It is opened,
   * stored and verified as the model is.
   */
  projector?: ProjectorSource;
  /**
   * Whether the weights that encode images and sounds stay in memory once they were used. `false` frees them after each use and reads
   * them again for the next one. Default: `false` if `tight`, otherwise `true`.
   */
  keepTowers?: boolean;
  /** The format of the key-value cache. Default `f16`. */
  kv?: "f32" | "f16" | "q8";
  /** The maximum bytes of GPU memory for the model and one conversation; on the CPU, of weights that are held in memory. */
  memory?: number;
  /**
   * On the GPU: where the weights live. `gpu`: all on the GPU. `rows`: embedding tables stay in the file, and only the rows of the current tokens
   * are copied to the GPU. `paged`: expert weights stay in the file as well, and the GPU caches the recently used ones. Default: the
   * first that fits into `memory`.
   */
  residency?: "gpu" | "rows" | "paged";
  /**
   * Saves memory: `rows`, a context of 1024 and prompts in small steps, unless other options override these. Default: `true` on
   * phones, on devices with 4 GB of memory or less, and on GPUs that offer only WebGPU's minimum limits.
   */
  tight?: boolean;
  /**
   * What replies do while the page is hidden. `pause`: they wait until the page is visible again, because phones take the GPU away
   * from hidden pages. Default: `pause` if `tight`, otherwise `continue`.
   */
  whenHidden?: "continue" | "pause";
  /** Called when another backend takes over after the load: with `auto`, if the GPU fails. Replies go on. */
  onBackend?: (backend: BackendInfo) => void;
  /** Called as the load progresses. Use {@link ProgressEvent.overall} for a progress bar. */
  onProgress?: (event: ProgressEvent) => void;
  /** Cancels the load, which then rejects with the code `cancelled`. */
  signal?: AbortSignal;
  /**
   * Where the engine runs. Default `true`: in a worker that the package starts. `false`: on the calling thread. `"blob"`: in a worker
   * started from a blob URL, for a package that is loaded from another origin. Or your own worker that imports `rullama/worker`; use
   * it for nothing else, because it ends with the engine.
   */
  worker?: boolean | "blob" | Worker;
  /** The URL of the wasm file for the GPU, if it is not next to the package's other files; or the compiled module. */
  wasm?: string | URL | WebAssembly.Module;
  /** The same for the wasm file for the CPU with one thread. */
  cpuWasm?: string | URL | WebAssembly.Module;
  /** The same for the wasm file for the CPU with several threads. */
  cpuThreadsWasm?: string | URL | WebAssembly.Module;
  /**
   * How many threads compute, if the CPU does. More than one need a page that is isolated from others (`crossOriginIsolated`) and an engine
   * in a worker; elsewhere one computes. Default: as many as the processor has, up to 8. {@link BackendInfo.threads} tells how many do.
   */
  threads?: number;
  /**
   * Stores a model from a URL in the browser. It is checked with {@link inspect} first, downloaded once (an interrupted download
   * resumes where it stopped) and then read from the store, with every byte verified. Default `false`: read from the network each time.
   */
  store?: boolean | StoreOptions;
  /** Headers for the requests that read the model, such as `Authorization`. */
  headers?: Record<string, string>;
  /** `true` uses only WebGPU's minimum limits and no optional features. For tests. */
  floor?: boolean;
  /** `false` does not use subgroups. For tests. */
  subgroups?: boolean;
  /** `false` skips the self-test of the GPU. */
  selfTest?: boolean;
}
