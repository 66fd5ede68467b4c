// What goes into an engine and what comes out of it.

/** Who speaks in a message. */
export type Role = "system" | "developer" | "user" | "assistant" | "tool" | (string & {});

/** A tool that the model calls. */
export interface ToolCall {
  id?: string;
  function: {
    /** Counts the calls of a reply. */
    index?: number;
    name: string;
    arguments: Record<string, unknown>;
  };
}

/** One message of a conversation. */
export interface Message {
  role: Role;
  content?: string;
  /** What the model thought before it answered. */
  thought?: string;
  /** Tools the model calls. */
  toolCalls?: ToolCall[];
  /** In a message of the role `tool`: which tool answers. */
  toolName?: string;
  /** In a message of the role `tool`: which call is answered. */
  toolCallId?: string;
  /** Attached media, as base64. */
  images?: string[];
}

/** A tool that the model may call. Its parameters are a JSON schema. */
export interface Tool {
  type?: "function";
  function: { name: string; description?: string; parameters?: Record<string, unknown> };
}

/** How tokens are chosen, and what ends a reply. What is left out has Ollama's defaults for Gemma 4. */
export interface GenerateOptions {
  /** The most tokens to generate; as many as fit the context, if left out. */
  maxTokens?: number;
  /** Texts that end the reply; neither they nor what follows is part of it. */
  stop?: string | string[];
  /** 0 takes the likeliest token always. Default 1. */
  temperature?: number;
  /** Keeps this many of the most probable tokens; 0 is off. Default 64. */
  topK?: number;
  /** Keeps the most probable tokens until their probabilities add up to this; 1 is off. Default 0.95. */
  topP?: number;
  /** Keeps tokens at least this many times as probable as the most probable one; 0 is off. */
  minP?: number;
  typicalP?: number;
  /** Above 1, makes repetition less likely. */
  repeatPenalty?: number;
  /** How many of the latest tokens the penalties look at; −1 is all. */
  repeatLastN?: number;
  frequencyPenalty?: number;
  presencePenalty?: number;
  /** The same seed gives the same reply. Left out, or -1, each reply has another, which {@link ReplyResult.seed} tells. */
  seed?: number;
  /** Added to the logits of tokens, by id; `false` rules a token out. */
  logitBias?: Record<number, number | false>;
  /** Asks for the log-probability of each token, and of so many of the likeliest beside it. */
  topLogprobs?: number;
  /** Goes on after tokens that end replies. For measurements. */
  ignoreEos?: boolean;
  /** Ends the reply: it then fails with the code `cancelled`. */
  signal?: AbortSignal;
}

/** How a conversation is answered. */
export interface ChatOptions extends GenerateOptions {
  /** Whether the model thinks first. Default: it does. */
  think?: boolean;
  /** Tools that the model may call. */
  tools?: Tool[];
}

/** A token with its log-probability. */
export interface TokenLogprob {
  id: number;
  /** Its text, with U+FFFD for what is not a whole character. */
  token: string;
  bytes: number[];
  logprob: number;
}

/** A chosen token with its log-probability and that of the likeliest beside it. */
export interface ChosenLogprob extends TokenLogprob {
  top: TokenLogprob[];
}

/** A newly known part of a reply. */
export interface Delta {
  /** More of the answer. Empty, if this is about something else. */
  text: string;
  /** More of the thought. */
  thought?: string;
  /** Calls, each complete. */
  toolCalls?: ToolCall[];
  /** The tokens that were chosen since the last delta. */
  ids: number[];
  /** Their log-probabilities, where `topLogprobs` asks for them. */
  logprobs?: ChosenLogprob[];
}

/** A complete reply. */
export interface ReplyResult {
  text: string;
  thought: string;
  toolCalls: ToolCall[];
  /** All tokens, the one that ended the reply included. */
  ids: number[];
  logprobs?: ChosenLogprob[];
  /** `stop`: the model or a stop string ended it. `length`: there was no room, or no more was asked for. */
  finishReason: "stop" | "length" | null;
  /** The seed of its random numbers. The same conversation and options with this seed give the same reply again. */
  seed: number;
  usage: Usage;
  timings: Timings;
}

export interface Usage {
  promptTokens: number;
  /** How many of them had been read before. */
  reusedTokens: number;
  generatedTokens: number;
}

export interface Timings {
  /** Milliseconds until the prompt was read and the first token chosen. */
  promptMs: number;
  /** Milliseconds from then to the end, without those in which the page was hidden and the reply waited. */
  generateMs: number;
}

/** How far loading has got. */
export interface ProgressEvent {
  /** What happens. They overlap: what is downloaded is uploaded piece by piece. */
  status: "download" | "verify" | "upload" | "compile";
  /** The file it happens to. */
  file: string;
  /** Bytes done, or of `compile` stages. */
  loaded: number;
  total: number;
  /** The share that is done, from 0 to 1. */
  progress: number;
}

/** What a GPU is and allows. */
export interface GpuInfo {
  /** What the browser says of it, which may be nothing. */
  name: string;
  /** Lanes of the smallest and the largest subgroup, where they are used. */
  subgroups: [number, number] | null;
  halfPrecision: boolean;
  timestamps: boolean;
  largestBinding: number;
  largestBuffer: number;
  workgroupMemory: number;
}

/** What {@link examine} found out. */
export interface DeviceReport {
  gpu: GpuInfo;
  /** How each kind of kernel answered a known case. */
  selfTests: { name: string; passed: boolean; detail: string }[];
  /** What models do in a safer way, because of wrong answers. */
  fallbacks: string[];
  /** Bytes a second that a kernel reads from memory. */
  bandwidth: number;
}

/** A kernel that steps of a model use. */
export interface KernelUse {
  step: "decode" | "prompt";
  /** Tokens of the step. */
  rows: number;
  kernel: string;
  /** How often a step uses it. */
  count: number;
}

/** How {@link examine} looks at the GPU. */
export interface ExamineOptions extends Pick<LoadOptions, "worker" | "wasm" | "floor" | "subgroups" | "signal"> {}

/** What a loaded model is, and where it runs. */
export interface EngineInfo {
  name: string;
  architecture: string;
  parameters: number;
  /** Size of the file. */
  bytes: number;
  /** Tokens a conversation may have. */
  context: number;
  /** Tokens the model was made for. */
  trainedContext: number;
  vocabulary: number;
  layers: number;
  gpu: GpuInfo;
  /** Where the weights live. */
  residency: "gpu" | "rows" | "paged";
  /** Bytes of wasm memory, which never become less. */
  wasmMemory: number;
  /** Bytes that the model and one conversation take of the GPU's memory. */
  memory: { weights: number; caches: number; scratch: number; staging: number; total: number };
  /** Tensors whose format has no kernels, and what they became. */
  conversions: { tensor: string; from: string; to: string }[];
  /** What is done in a safer way, because the GPU answered wrongly in a self-test. */
  fallbacks: string[];
  /** What is not as expected in the model's file: tensors or keys that are not used, or missing ones that were assumed. */
  warnings: string[];
}

/** A reader of your own. */
export interface CustomSource {
  readonly length: number;
  readonly name?: string;
  read(offset: number, length: number): Uint8Array | ArrayBuffer | Promise<Uint8Array | ArrayBuffer>;
}

/**
 * One file of a model: an address, a file, the name that it has in the package's store, its path in the browser's storage,
 * bytes, or a reader.
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

/** A model: one file, or all files of a split one, in order. The address of the first part names the others. */
export type ModelSource = FileSource | readonly FileSource[];

/** How an address is kept in the browser. */
export interface StoreOptions {
  /**
   * The name to keep it under. For one file only. Unless told, the last piece of the address; where a file from elsewhere has
   * that name, host and folders stand in brackets behind it.
   */
  name?: string;
  /** The digest it must have, as 64 hex digits. For one file only. */
  sha256?: string;
  /** Asks the server whether it has another file now, and fetches that if so. The old one is kept until the new one is whole. */
  replace?: boolean;
}

/** How a model is loaded. */
export interface LoadOptions {
  /** Tokens a conversation may have. Default: 4096, or what the model was made for if that is less. */
  context?: number;
  /** How keys and values are kept. Default `f16`. */
  kv?: "f32" | "f16" | "q8";
  /** The most bytes of GPU memory that the model and one conversation may take. */
  memory?: number;
  /**
   * Where weights live. `gpu`: all on the GPU. `rows`: embedding tables stay in the file, and tokens bring their rows with
   * them. `paged`: also experts, of which those used lately are on the GPU. Default: the first that fits `memory`.
   */
  residency?: "gpu" | "rows" | "paged";
  /**
   * Spares memory: `rows`, a context of 1024 and prompts in small steps, unless other options say otherwise. Default: on
   * phones, on devices with 4 GB of memory or less, and on GPUs that offer no more than WebGPU promises.
   */
  tight?: boolean;
  /**
   * What replies do while the page is hidden. `pause`: they wait until it is looked at again, because phones take the GPU
   * from pages that nobody sees. Default: `pause` where memory is spared, else `continue`.
   */
  whenHidden?: "continue" | "pause";
  /** Told how far loading has got. */
  onProgress?: (event: ProgressEvent) => void;
  /** Ends loading: it then fails with the code `cancelled`. */
  signal?: AbortSignal;
  /**
   * Where the engine runs. Default `true`: in a worker of its own. `false`: on this thread. `"blob"`: in a worker made
   * from a blob, which may import from another origin. Or a worker of yours that imports `rullama/worker`, is used for
   * nothing else, and ends with the engine.
   */
  worker?: boolean | "blob" | Worker;
  /** Where the wasm file is, if not beside this package's files; or the compiled module. */
  wasm?: string | URL | WebAssembly.Module;
  /**
   * Keeps what an address names in the browser: downloaded once, resumed where it stopped, and read from there the next time.
   * Whatever is read from there is checked. Default `false`: read from the network as it is needed.
   */
  store?: boolean | StoreOptions;
  /** Headers of requests for the model, such as one that names who asks. */
  headers?: Record<string, string>;
  /** `true` uses no more of the GPU than WebGPU promises everywhere. For tests. */
  floor?: boolean;
  /** `false` leaves subgroups alone. For tests. */
  subgroups?: boolean;
  /** `false` trusts the GPU without testing it. */
  selfTest?: boolean;
}
