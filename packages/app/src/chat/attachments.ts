// Images and sounds that belong to messages: what is kept about each. Their content is in the attachment store.

export type Medium = "image" | "audio";

export interface Attachment {
  /** The key of its content in the attachment store. Messages that were edited share it with the earlier version. */
  id: string;
  medium: Medium;
  /** The name of the file. */
  name: string;
  /** The media type of the content, such as `image/png`. */
  type: string;
  bytes: number;
  /** Of an image: its size in pixels, upright. */
  width?: number;
  height?: number;
  /** Of a sound: its length. */
  seconds?: number;
}

/** A message that was not sent yet. */
export interface Unsent {
  text: string;
  attachments: readonly Attachment[];
}

/** The most bytes of one file. */
export const MOST_BYTES = 50_000_000;

/** The most attachments of one message. */
export const MOST_ATTACHMENTS = 16;

/** Seconds of the longest sound, until a model says otherwise. */
export const LONGEST_SOUND = 30;

/** The types of files, by the last part of their names: some systems don't give a type. All of them are safe to show. */
const TYPES: Readonly<Record<string, string>> = {
  png: "image/png",
  jpg: "image/jpeg",
  jpeg: "image/jpeg",
  webp: "image/webp",
  gif: "image/gif",
  bmp: "image/bmp",
  avif: "image/avif",
  heic: "image/heic",
  heif: "image/heif",
  wav: "audio/wav",
  mp3: "audio/mpeg",
  flac: "audio/flac",
  ogg: "audio/ogg",
  oga: "audio/ogg",
  opus: "audio/ogg",
  m4a: "audio/mp4",
  aac: "audio/aac",
  weba: "audio/webm",
};

/** What the file dialog offers for each medium. */
export const ACCEPT: Readonly<Record<Medium, string>> = { image: acceptOf("image"), audio: `audio/*,${acceptOf("audio")}` };

/** The type of a file's content, by what the system says and by its name; undefined if it is neither an image nor a sound. */
export function typeOf({ name, type }: { name: string; type: string }): string | undefined {
  const byName = TYPES[name.split(".").at(-1)?.toLowerCase() ?? ""];
  const given = type.split(";")[0] as string;
  // A drawing in SVG has no pixels, and may contain anything.
  const isMedia = /^(image|audio)\/[\w.+-]+$/.test(given) && given !== "image/svg+xml";
  return isMedia ? given : given === "application/ogg" || given === "" || given === "application/octet-stream" ? byName : undefined;
}

export function mediumOf(type: string): Medium {
  return type.startsWith("image/") ? "image" : "audio";
}

/** An attachment from untrusted values; undefined if a field is missing or wrong. */
export function readAttachment(value: unknown): Attachment | undefined {
  const fields = (typeof value === "object" && value !== null ? value : {}) as Record<string, unknown>;
  const { id, name, type, bytes } = fields;
  if (typeof id !== "string" || id === "" || typeof name !== "string" || typeof type !== "string" || !isCount(bytes)) {
    return undefined;
  }
  const known = typeOf({ name: "", type });
  if (known === undefined || fields.medium !== mediumOf(known)) {
    return undefined;
  }
  const attachment: Attachment = { id, medium: mediumOf(known), name: name.slice(0, 200), type: known, bytes };
  for (const field of ["width", "height", "seconds"] as const) {
    const number = fields[field];
    if (isCount(number)) {
      attachment[field] = number;
    }
  }
  return attachment;
}

/** The keys of everything that is attached to these messages. */
export function attachedTo(messages: readonly { attachments?: readonly Attachment[] }[]): string[] {
  return messages.flatMap(({ attachments }) => (attachments ?? []).map(({ id }) => id));
}

/** "image", "sound", "2 attachments". */
export function summaryOf(attachments: readonly Attachment[]): string {
  const [first] = attachments;
  return attachments.length === 1 && first ? (first.medium === "image" ? "Image" : "Sound") : `${attachments.length} attachments`;
}

/** How an image or sound is named to people: the name of its file with its kind. */
export function titleOfAttachment({ name, medium }: Attachment): string {
  return name === "" ? (medium === "image" ? "Image" : "Sound") : name;
}

function acceptOf(medium: Medium): string {
  const own = Object.entries(TYPES).filter(([, type]) => mediumOf(type) === medium);
  return [...new Set(own.flatMap(([ending, type]) => [type, `.${ending}`]))].join(",");
}

function isCount(value: unknown): value is number {
  return typeof value === "number" && Number.isFinite(value) && value >= 0;
}
