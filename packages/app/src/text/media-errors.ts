// What errors of images, sounds, cameras and microphones mean for the user. The codes of the engine are those of `crates/media`.

import type { Details, Entry } from "./errors";
import { bytes, count } from "./format";

const number = (value: unknown): number | undefined => (typeof value === "number" ? value : undefined);

const fileOf = ({ file }: Details) => (typeof file === "string" && file !== "" ? `“${file}”` : "The file");

const deviceOf = (details: Details) => (details.device === "camera" ? "camera" : "microphone");

function imageSize(details: Details): string {
  const [width, height] = [number(details.width), number(details.height)];
  return width === undefined || height === undefined ? "" : `It has ${count(width)} × ${count(height)} pixels. `;
}

function soundTooLong(details: Details): string {
  const [seconds, longest] = [number(details.seconds), number(details.longest)];
  const facts = seconds === undefined ? "" : `It has ${count(Math.ceil(seconds))} seconds. `;
  return `${facts}A model hears up to ${count(longest ?? 30)} seconds at once. Cut it into shorter pieces and attach those.`;
}

export const MEDIA_ENTRIES: Readonly<Record<string, Entry>> = {
  "input.media_unknown": { title: "An attachment can't be used", text: "It is neither an image nor a sound that rullama can read.", step: "none" },
  "input.media_too_large": {
    title: "The image has too much detail",
    text: "It becomes more tokens than this model can read at once on this device. Choose less image detail in the settings.",
    step: "settings",
  },
  media: { title: "An attachment can't be used", text: "Remove it, or attach another file.", step: "none" },
  "media.image": { title: "The image can't be used", text: "Attach another image.", step: "none" },
  "media.image.budget": { title: "The image detail is invalid", text: "Choose another image detail in the settings.", step: "settings" },
  "media.image.empty": { title: "The image is empty", text: "It has no pixels. Attach another image.", step: "none" },
  "media.image.too_large": {
    title: "The image is too large",
    text: (details) => `${imageSize(details)}rullama takes images of up to 100 megapixels. Make it smaller and attach it again.`,
    step: "none",
  },
  "media.image.size": { title: "The image can't be read", text: "Its size does not match its content. Save it again in another program.", step: "none" },
  "media.image.unknown": {
    title: "This browser can't read the image",
    text: "It is damaged, or in a format that this browser doesn't know. PNG, JPEG and WebP work everywhere.",
    step: "none",
  },
  "media.image.broken": { title: "The image is damaged", text: "It can't be decoded. Attach another copy of it.", step: "none" },
  "media.image.no_decoder": { title: "This browser can't read images", text: "It has no image decoder for pages. Use a current version of Firefox, Chrome, Edge or Safari.", step: "none" },
  "media.image.memory": { title: "The image needs too much memory", text: "Make it smaller and attach it again.", step: "none" },
  "media.sound": { title: "The sound can't be used", text: "Attach another sound.", step: "none" },
  "media.sound.empty": { title: "The sound is empty", text: "It has no samples. Record it again, or attach another sound.", step: "none" },
  "media.sound.too_short": { title: "The sound is too short", text: "There is too little to hear. Record it again, or attach another sound.", step: "none" },
  "media.sound.too_long": { title: "The sound is too long", text: soundTooLong, step: "none" },
  "media.sound.not_finite": { title: "The sound is damaged", text: "It contains invalid numbers. Attach another copy of it.", step: "none" },
  "media.sound.unknown": {
    title: "This browser can't read the sound",
    text: "It is damaged, or in a format that this browser doesn't know. WAV and MP3 work everywhere.",
    step: "none",
  },
  "media.sound.broken": { title: "The sound is damaged", text: "It can't be decoded. Attach another copy of it.", step: "none" },
  "media.sound.unsupported": { title: "The sound's encoding isn't supported", text: "Save it as WAV or MP3 and attach it again.", step: "none" },
  "media.sound.truncated": { title: "The sound is incomplete", text: "The file ends before the sound does. Attach another copy of it.", step: "none" },
  "media.sound.channels": { title: "The sound has too many channels", text: "Save it with one or two channels and attach it again.", step: "none" },
  "media.sound.rate": { title: "The sound's sample rate isn't supported", text: "Save it with 16 to 48 kHz and attach it again.", step: "none" },
  "media.sound.no_decoder": { title: "This browser can't read sounds", text: "It has no audio decoder. Use a current version of Firefox, Chrome, Edge or Safari.", step: "none" },
  "attachment.kind": { title: "This is neither an image nor a sound", text: "Attach a PNG, JPEG, WebP or GIF image, or a WAV, MP3, FLAC, OGG or M4A sound.", step: "none" },
  "attachment.too_large": {
    title: "The file is too large",
    text: (details) => `${number(details.bytes) === undefined ? "" : `It has ${bytes(details.bytes as number)}. `}A file can have up to ${bytes(number(details.most) ?? 50e6)}.`,
    step: "none",
  },
  "attachment.missing": {
    title: "An attachment is gone",
    text: (details) => `${fileOf(details)} is no longer stored in this browser. Edit the message to remove or replace it.`,
    step: "none",
  },
  "capture.denied": {
    title: "Not allowed",
    text: (details) => `The browser doesn't let this page use the ${deviceOf(details)}. Allow it in the browser's settings for this page, usually behind the symbol next to the address.`,
    step: "none",
  },
  "capture.missing": { title: "Nothing is connected", text: (details) => `The browser finds no ${deviceOf(details)}. Connect one and try again.`, step: "none" },
  "capture.busy": { title: "It is in use", text: (details) => `Another program uses the ${deviceOf(details)}, or it stopped working. Close that program and try again.`, step: "none" },
  "capture.insecure": {
    title: "This needs https",
    text: (details) => `Browsers offer the ${deviceOf(details)} only to pages with https, or on this computer itself. Attach a file instead.`,
    step: "none",
  },
  "capture.unavailable": { title: "It can't be used", text: (details) => `This browser doesn't offer the ${deviceOf(details)}. Attach a file instead.`, step: "none" },
  "import.too_large": { title: "This file is too large", text: "Browsers can't read files of this size at once. Export fewer chats into one file.", step: "none" },
  "export.too_large": {
    title: "Too many images and sounds",
    text: "They are too large for one file. Export the chats one by one, from the menu of each chat.",
    step: "none",
  },
};
