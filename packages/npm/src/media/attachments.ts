// The images and sounds of a request, on the page. They stay here until the engine's side asks for one, which is then decoded: only one
// at a time takes memory, and one that is needed again, because the CPU took over from the GPU, can be asked for again.

import { RullamaError } from "../errors.js";
import type { DecodedMedium, SentMedium } from "../protocol.js";
import type { ImageBudget, ImageSource, MediaInfo, Message, SoundSource } from "../types.js";
import { decodeImage, keepImage } from "./image.js";
import { decodeSound, keepSound } from "./sound.js";
import type { Take } from "./parts.js";

/** An image or a sound that waits. */
export interface PageMedium {
  /** What the program gave; a copy if the program can change it. */
  source: Promise<ImageSource | SoundSource>;
  decode(signal: AbortSignal | undefined): Promise<DecodedMedium>;
}

/** Where images and sounds wait, by number. */
export interface Shelf {
  addMedium(medium: PageMedium): number;
  medium(number: number): PageMedium | undefined;
  dropMedia(numbers: readonly number[]): void;
}

/** Messages with what the program gave as images and sounds, instead of numbers. */
export function withSources(messages: readonly Message[], shelf: Shelf): Promise<Message[]> {
  const sources = async (numbers: readonly unknown[] | undefined) =>
    (await Promise.all((numbers ?? []).map((number) => shelf.medium(Number(number))?.source))).filter((source) => source !== undefined);
  const one = async ({ images, audio, ...message }: Message): Promise<Message> => ({
    ...message,
    ...(images ? { images: (await sources(images)) as ImageSource[] } : {}),
    ...(audio ? { audio: (await sources(audio)) as SoundSource[] } : {}),
  });
  return Promise.all(messages.map(one));
}

export class Attachments {
  readonly #shelf: Shelf;
  readonly #takes: MediaInfo;
  readonly #budget: ImageBudget | undefined;
  readonly #sent: SentMedium[] = [];

  /** `takes` is what the model takes, `budget` the budget of images that have none of their own. */
  constructor(shelf: Shelf, takes: MediaInfo, budget?: ImageBudget) {
    this.#shelf = shelf;
    this.#takes = takes;
    this.#budget = budget;
  }

  /** The numbers of the images and sounds that were taken. */
  get numbers(): number[] {
    return this.#sent.map(({ number }) => number);
  }

  /** The parameter of a call. One without images and sounds has none. */
  get params(): { media?: SentMedium[] } {
    return this.#sent.length > 0 ? { media: this.#sent } : {};
  }

  readonly take: Take = (medium, source, own) => {
    if (!this.#takes[medium]) {
      const [code, what] = medium === "image" ? ["model.no_images", "see images"] : ["model.no_audio", "hear sounds"];
      throw new RullamaError(code, `The model can't ${what}. A model that can may need its projector file: the option \`projector\`.`);
    }
    const number = this.#shelf.addMedium(medium === "image" ? image(source as ImageSource) : sound(source as SoundSource));
    const budget = medium === "image" ? (own ?? this.#budget) : undefined;
    this.#sent.push({ medium, number, ...(budget === undefined ? {} : { budget }) });
    return String(number);
  };

  /** Forgets them. */
  drop(): void {
    this.#shelf.dropMedia(this.numbers);
  }
}

function image(given: ImageSource): PageMedium {
  const source = quiet(keepImage(given));
  return { source, decode: async (signal) => decodeImage(await source, signal) };
}

function sound(given: SoundSource): PageMedium {
  const source = quiet(keepSound(given));
  return { source, decode: async (signal) => decodeSound(await source, signal) };
}

/** Keeps the browser from reporting a rejection as unhandled: the request that needs the source reports it. */
function quiet<T>(work: Promise<T>): Promise<T> {
  work.catch(() => {});
  return work;
}
