// Images and sounds in messages: what is taken out of them, and what is refused.

import { expect, test, vi } from "vitest";

import { Completions } from "../../src/completions.js";
import { Attachments, withSources, type PageMedium } from "../../src/media/attachments.js";
import { takeMediaOptions } from "../../src/media/options.js";
import { messageJson, messagesJson } from "../../src/names.js";
import { Reply } from "../../src/reply.js";
import type { ChatOptions, MediaInfo, Message, ReplyResult } from "../../src/types.js";

vi.mock("../../src/runtime.js", () => ({ runtime: () => Promise.reject(new Error("no module")), onBroken: () => () => {} }));

const ALL: MediaInfo = { image: true, audio: true, imageBudgets: [70, 140, 280, 560, 1120], defaultImageBudget: 280, longestSound: 30 };

/** A shelf, and attachments that are put on it. */
function shelf(takes: MediaInfo = ALL, budget?: ChatOptions["imageBudget"]) {
  const media = new Map<number, PageMedium>();
  const here = {
    addMedium: (medium: PageMedium) => media.set(media.size + 1, medium).size,
    medium: (number: number) => media.get(number),
    dropMedia: (numbers: readonly number[]) => numbers.forEach((number) => media.delete(number)),
  };
  return { media, here, attached: new Attachments(here, takes, budget) };
}

const image = new Blob(["image"]);
const sound = Float32Array.of(0.5);

test("lists of numbers stand for images and sounds, which wait on the page", async () => {
  const { media, here, attached } = shelf(ALL, 140);
  const messages: Message[] = [
    { role: "user", content: "What is this?", images: [image, "https://example.org/a.png"], audio: [sound] },
    { role: "assistant", content: "A cat." },
    { role: "user", content: "And this?", images: [new URL("data:,b")] },
  ];
  const json = messagesJson(messages, attached.take);
  expect(JSON.parse(json)).toEqual([
    { role: "user", content: "What is this?", images: ["1", "2"], audio: ["3"] },
    { role: "assistant", content: "A cat." },
    { role: "user", content: "And this?", images: ["4"] },
  ]);
  expect(attached.params).toEqual({
    media: [
      { medium: "image", number: 1, budget: 140 },
      { medium: "image", number: 2, budget: 140 },
      { medium: "audio", number: 3 },
      { medium: "image", number: 4, budget: 140 },
    ],
  });
  expect(await withSources(JSON.parse(json) as Message[], here)).toEqual(messages);
  attached.drop();
  expect(media.size).toBe(0);
});

test("samples are copied at once, because a program may use their memory again", async () => {
  const { here, attached } = shelf();
  const samples = Float32Array.of(0.25, 0.5);
  const json = messageJson({ role: "user", audio: [samples] }, attached.take);
  samples.fill(9);
  const [message] = await withSources([JSON.parse(json) as Message], here);
  expect(message?.audio).toEqual([Float32Array.of(0.25, 0.5)]);
});

test("messages without images and sounds stay as they are, and so do the calls", () => {
  const { attached } = shelf();
  expect(messageJson("hi", attached.take)).toBe('{"role":"user","content":"hi"}');
  expect(messageJson({ role: "user", content: "hi", images: [], audio: [] }, attached.take)).toBe('{"role":"user","content":"hi"}');
  expect(messageJson(null as never, attached.take)).toBe("null");
  expect(attached.params).toEqual({});
});

test("OpenAI's parts are read: texts are joined, images have a detail, sounds are base64", async () => {
  const { media, attached } = shelf(ALL, 560);
  const message: Message = {
    role: "user",
    images: [image],
    content: [
      { type: "text", text: "Look: " },
      { type: "image_url", image_url: { url: "https://example.org/a.png" } },
      { type: "image_url", image_url: { url: "data:image/png;base64,AA==", detail: "low" } },
      { type: "image_url", image_url: { url: "b.png", detail: "high" } },
      { type: "input_audio", input_audio: { data: btoa("RIFF"), format: "wav" } },
      { type: "text", text: "well?" },
    ],
  };
  expect(JSON.parse(messageJson(message, attached.take))).toEqual({
    role: "user",
    content: "Look: well?",
    images: ["1", "2", "3", "4"],
    audio: ["5"],
  });
  expect(attached.params.media?.map(({ budget }) => budget)).toEqual([560, 560, 70, 1120, undefined]);
  const file = (await media.get(5)?.source) as Blob;
  expect([file.type, await file.text()]).toEqual(["audio/wav", "RIFF"]);
});

test.each<[string, Partial<Message>, string, string]>([
  ["a list of another kind", { images: image as never }, "chat.wrong_type", "`images` of a message must be a list."],
  ["another value", { images: [7] as never }, "chat.wrong_type", "An image in `images` is of the kind Number."],
  ["an image as a sound", { audio: [{}] as never }, "chat.wrong_type", "A sound in `audio` is of the kind Object."],
  ["another part", { content: [{ type: "file" } as never] }, "chat.wrong_type", 'A content part has the type "file".'],
  ["no part", { content: [null as never] }, "chat.wrong_type", "A content part has the type undefined."],
  ["a text without text", { content: [{ type: "text" } as never] }, "chat.wrong_type", "must have a `text`"],
  ["an image without an address", { content: [{ type: "image_url" } as never] }, "chat.wrong_type", "with a `url`"],
  ["another detail", { content: [{ type: "image_url", image_url: { url: "a", detail: "some" as never } }] }, "option.out_of_range", '`image_url.detail` is "some"'],
  ["no base64", { content: [{ type: "input_audio", input_audio: { data: "?" } }] }, "chat.wrong_type", "as base64 in `data`"],
])("%s is refused", (_, message, code, text) => {
  const { attached } = shelf();
  expect(() => messageJson({ role: "user", ...message }, attached.take)).toThrow(expect.objectContaining({ code, message: expect.stringContaining(text) }));
});

test("a model that sees or hears nothing refuses what it can't take", () => {
  const { attached } = shelf({ ...ALL, image: false, audio: false });
  expect(() => messageJson({ role: "user", images: [image] }, attached.take)).toThrow(expect.objectContaining({ code: "model.no_images" }));
  expect(() => messageJson({ role: "user", audio: [sound] }, attached.take)).toThrow(expect.objectContaining({ code: "model.no_audio" }));
});

test("the options of images are checked, and the engine does not get them", () => {
  const onEncode = () => {};
  expect(takeMediaOptions({ imageBudget: 70, onEncode, think: false })).toEqual({ imageBudget: 70, onEncode, rest: { think: false } });
  expect(() => takeMediaOptions({ imageBudget: 71 as never })).toThrow(
    expect.objectContaining({ code: "option.out_of_range", message: "Option `imageBudget` is 71. It must be a number among 70, 140, 280, 560, 1120." }),
  );
  expect(() => takeMediaOptions({ onEncode: {} as never })).toThrow(expect.objectContaining({ code: "option.wrong_type" }));
});

test("a completion passes parts, the budget and the listener on", async () => {
  const asked: { messages: readonly Message[]; options: ChatOptions }[] = [];
  const result = { text: "A cat.", thought: "", toolCalls: [], usage: {}, timings: {} } as unknown as ReplyResult;
  const made = new Completions((messages, options) => {
    asked.push({ messages, options });
    return new Reply(async () => result);
  }, "model");
  const content = [{ type: "image_url" as const, image_url: { url: "data:,a" } }];
  const onEncode = () => {};
  await made.create({ messages: [{ role: "user", content }], image_budget: 1120 }, { onEncode });
  expect(asked).toEqual([{ messages: [{ role: "user", content }], options: { imageBudget: 1120, onEncode } }]);
  const wrong = made.create({ messages: [{ role: "user", content }], image_budget: 5 as never });
  await expect(wrong).rejects.toMatchObject({ code: "option.out_of_range" });
});
