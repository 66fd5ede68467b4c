import { readFileSync } from "node:fs";
import type { EncodeProgress, ImageBudget } from "rullama";
import { describe, expect, test } from "vitest";
import { AttachmentStore } from "../../src/chat/attachment-store";
import { ACCEPT, readAttachment, typeOf, type Attachment } from "../../src/chat/attachments";
import type { ConversationDatabase } from "../../src/chat/database";
import { Drafts } from "../../src/chat/drafts";
import { markdownText } from "../../src/chat/markdown-export";
import { mediaTokens, withMedia } from "../../src/chat/media";
import { encodingText } from "../../src/chat/message-view";
import { search } from "../../src/chat/search";
import { budgetFor, softTokens } from "../../src/chat/soft-tokens";
import { newConversation, path } from "../../src/chat/tree";
import { planTrim, measureWith } from "../../src/chat/trim";
import { makeChat, settle } from "./fake-chat";

const CAT: Attachment = { id: "cat", medium: "image", name: "cat.png", type: "image/png", bytes: 3, width: 640, height: 480 };
const NOTE: Attachment = { id: "note", medium: "audio", name: "note.wav", type: "audio/wav", bytes: 3, seconds: 1.5 };

/** A chat and two attachments whose content is stored. */
async function makeMediaChat() {
  const made = await makeChat();
  const keep = async (attachment: Attachment, text: string) => ({ ...attachment, id: (await made.library.attachments.add(new Blob([text]))).id });
  const send = async (text: string, ...attachments: Attachment[]) => {
    void made.chat.send(text, attachments);
    await settle();
  };
  return { ...made, send, cat: await keep(CAT, "cat"), note: await keep(NOTE, "note") };
}

/** The prompt with the texts of its images and sounds. */
async function asText(request: unknown) {
  const texts = (blobs: Blob[] = []) => Promise.all(blobs.map((blob) => blob.text()));
  const messages = request as { role: string; content: string; images?: Blob[]; audio?: Blob[] }[];
  return Promise.all(messages.map(async ({ role, content, images, audio }) => [role, content, ...(await texts(images)), ...(await texts(audio))]));
}

describe("a file", () => {
  test("is an image or a sound by its type, or by its name where the system knows no type", () => {
    const types = [
      ["cat.png", "image/png"],
      ["cat.JPG", ""],
      ["note.m4a", "application/octet-stream"],
      ["note.ogg", "application/ogg"],
      ["note", "audio/webm;codecs=opus"],
      ["drawing.svg", "image/svg+xml"],
      ["model.gguf", ""],
      ["cat.png", "text/html"],
    ].map(([name, type]) => typeOf({ name: name as string, type: type as string }));
    expect(types).toEqual(["image/png", "image/jpeg", "audio/mp4", "audio/ogg", "audio/webm", undefined, undefined, undefined]);
    expect([ACCEPT.image.includes(".webp"), ACCEPT.image.includes("audio"), ACCEPT.audio.includes(".flac")]).toEqual([true, false, true]);
  });

  test("that is described in stored or imported data is not trusted", () => {
    expect(readAttachment(CAT)).toEqual(CAT);
    expect(readAttachment({ ...CAT, width: -1, height: "a", seconds: NaN, extra: 1 })).toEqual({ id: "cat", medium: "image", name: "cat.png", type: "image/png", bytes: 3 });
    const wrong = [null, 1, {}, { ...CAT, id: "" }, { ...CAT, type: "text/html" }, { ...CAT, type: "image/svg+xml" }, { ...CAT, medium: "audio" }, { ...CAT, bytes: "3" }];
    expect(wrong.map(readAttachment)).toEqual(wrong.map(() => undefined));
  });
});

describe("the tokens of images and sounds", () => {
  test("of images are those of the engine, for every size that it is tested with", () => {
    const { fits } = JSON.parse(readFileSync(new URL("../../../../testdata/media/prepared.json", import.meta.url), "utf8"));
    expect(fits.length).toBeGreaterThan(200);
    for (const [width, height, budget, across, down] of fits as number[][]) {
      const tokens = softTokens([{ ...CAT, width: width as number, height: height as number }], budget as ImageBudget);
      expect(tokens - 2, `${width}×${height} of ${budget}`).toBe(((across as number) / 48) * ((down as number) / 48));
    }
  });

  test("follow the image detail of the settings, if the model was trained with it", () => {
    const media = { image: true, audio: false, imageBudgets: [70, 280] as ImageBudget[], defaultImageBudget: 280 as const, longestSound: 0 };
    expect([budgetFor({ media }, 70), budgetFor({ media }, 1120)]).toEqual([70, 280]);
    expect(budgetFor({} as { media: typeof media }, 560)).toBe(560);
  });

  test("of sounds are 25 a second; unknown sizes count as the largest", () => {
    expect(softTokens([NOTE], 280)).toBe(40);
    const { width: _, ...unknown } = CAT;
    const { seconds: __, ...long } = NOTE;
    expect([softTokens([unknown], 560), softTokens([long], 280)]).toEqual([562, 752]);
    expect(mediaTokens([{ role: "user", content: "a", attachments: [NOTE, NOTE] }, { role: "assistant", content: "b" }], 280)).toBe(80);
  });
});

describe("a message with attachments", () => {
  test("reaches the model with their content, before its text, with the image detail of the settings", async () => {
    const { chat, replies, send, cat, note } = await makeMediaChat();
    await send("What is this?", note, cat);
    expect(await asText(replies[0]?.request)).toEqual([["user", "What is this?", "cat", "note"]]);
    expect(replies[0]?.options.imageBudget).toBe(280);
    expect(chat.conversation.title).toBe("What is this?");
    replies[0]?.write("A cat.");
    replies[0]?.end();
    await settle();
    await send("And now?");
    // Also in later turns.
    expect((await asText(replies[1]?.request)).map((message) => message.length)).toEqual([4, 2, 2]);
  });

  test("needs no text; the chat is called by the file then", async () => {
    const { chat, replies, send, cat } = await makeMediaChat();
    await send("", cat);
    expect(await asText(replies[0]?.request)).toEqual([["user", "", "cat"]]);
    expect(chat.conversation.title).toBe("cat.png");
  });

  test("without any, no option about images is sent: older engines refuse unknown ones", async () => {
    const { replies, send } = await makeMediaChat();
    await send("Hello");
    expect(replies[0]?.options).not.toHaveProperty("imageBudget");
    expect(replies[0]?.options).not.toHaveProperty("onEncode");
  });

  test("tells how far they are read, until the first word", async () => {
    const { chat, replies, send, cat } = await makeMediaChat();
    await send("What?", cat);
    const progress: EncodeProgress = { medium: "image", index: 0, count: 2, fraction: 0.409 };
    const before = chat.growth;
    replies[0]?.options.onEncode?.(progress);
    expect([chat.writing?.encoding, chat.growth]).toEqual([progress, before + 1]);
    expect(encodingText(progress)).toBe("Looking at the image (1 of 2) … 40 %");
    expect(encodingText({ medium: "audio", index: 0, count: 1, fraction: 1 })).toBe("Listening to the sound … 100 %");
    replies[0]?.write("A");
    await settle();
    expect(chat.writing?.encoding).toBeUndefined();
  });

  test("keeps them when it is edited or answered again; one that is removed stays in the old version", async () => {
    const { chat, library, replies, send, cat, note } = await makeMediaChat();
    await send("What?", cat, note);
    replies[0]?.end();
    await settle();
    const [question, answer] = path(chat.conversation);
    void chat.regenerate(answer?.id ?? "");
    await settle();
    expect(await asText(replies[1]?.request)).toEqual([["user", "What?", "cat", "note"]]);
    void chat.edit(question?.id ?? "", "Edited");
    await settle();
    expect(await asText(replies[2]?.request)).toEqual([["user", "Edited", "cat", "note"]]);
    void chat.edit(question?.id ?? "", "Only the cat", [cat]);
    await settle();
    expect(await asText(replies[3]?.request)).toEqual([["user", "Only the cat", "cat"]]);
    expect([question?.attachments, await library.attachments.get(note.id)].map(Boolean)).toEqual([true, true]);
  });

  test("whose content is gone fails with the name of the file, and nothing else is lost", async () => {
    const { chat, library, replies, send, cat } = await makeMediaChat();
    await library.attachments.free([cat.id]);
    await send("What?", cat);
    expect(replies.length).toBe(0);
    expect(path(chat.conversation)).toMatchObject([{ content: "What?" }, { state: "failed", error: { code: "attachment.missing", details: { file: "cat.png" } } }]);
  });

  test("waits in the queue with them, and goes back into the draft with them", async () => {
    const { chat, replies, send, cat, note } = await makeMediaChat();
    await send("one");
    await send("two", cat);
    await send("three", note);
    const [, third] = chat.queue.of(chat.conversation);
    chat.unqueue(third?.id ?? "");
    expect([chat.drafts.get(chat.conversation), chat.drafts.attachments(chat.conversation)]).toEqual(["three", [note]]);
    replies[0]?.end();
    await settle();
    expect((await asText(replies[1]?.request)).at(-1)).toEqual(["user", "two", "cat"]);
  });

  test("that waits in the queue is a draft after a reload", async () => {
    const { send, cat } = await makeMediaChat();
    await send("one");
    await send("two", cat);
    const { chat } = await makeChat();
    expect([chat.drafts.get(chat.conversation), chat.drafts.attachments(chat.conversation)]).toEqual(["two", [cat]]);
  });
});

describe("an answer about an image that was stopped", () => {
  test("is continued by a request that is not shown", async () => {
    const { chat, replies, send, shown, cat } = await makeMediaChat();
    await send("What?", cat);
    replies[0]?.write("A grey");
    await settle();
    await chat.stop();
    const [, answer] = path(chat.conversation);
    void chat.continue(answer?.id ?? "");
    await settle();
    const asked = await asText(replies[1]?.request);
    expect(asked.slice(0, 2)).toEqual([["user", "What?", "cat"], ["assistant", "A grey"]]);
    expect([asked.length, replies[1]?.options.think]).toEqual([3, false]);
    replies[1]?.write("cat.");
    replies[1]?.end();
    await settle();
    expect(shown()).toEqual([["What?", "complete"], ["A grey cat.", "complete"]]);
  });

  test("in its thought is begun anew", async () => {
    const { chat, replies, send, shown, cat } = await makeMediaChat();
    await send("What?", cat);
    const [, answer] = path(chat.conversation);
    Object.assign(answer ?? {}, { thought: "Hm" });
    await chat.stop();
    void chat.continue(answer?.id ?? "");
    await settle();
    expect([(await asText(replies[1]?.request)).length, answer?.thought]).toEqual([1, undefined]);
    replies[1]?.write("A cat.");
    replies[1]?.end();
    await settle();
    expect(shown().at(-1)).toEqual(["A cat.", "complete"]);
  });
});

describe("a full context", () => {
  test("counts images: a turn with one is left out first", async () => {
    const { engine, cat } = await makeMediaChat();
    const conversation = newConversation(0);
    const messages = ["q1", "a1", "q2", "a2", "q3"].map((id, index, all) => ({
      id,
      parent: all[index - 1] ?? null,
      role: index % 2 === 0 ? ("user" as const) : ("assistant" as const),
      content: id,
      createdAt: index,
      state: "complete" as const,
      ...(id === "q1" ? { attachments: [cat] } : {}),
    }));
    conversation.messages.push(...messages);
    expect(await measureWith(engine, 280)(messages)).toBeGreaterThan(260);
    expect(await planTrim(conversation, "q3", 100, measureWith(engine, 280))).toEqual({ first: "q2", dropped: 2 });
  });
});

describe("the content of attachments", () => {
  test("is freed when it is removed from a draft, but not while a message has it", async () => {
    const { chat, library, send, cat, note } = await makeMediaChat();
    chat.drafts.attach(chat.conversation, cat, note);
    chat.detach(note);
    await settle();
    expect([await library.attachments.get(note.id), chat.drafts.attachments(chat.conversation)]).toEqual([undefined, [cat]]);
    chat.drafts.take(chat.conversation);
    await send("What?", cat);
    chat.drafts.attach(chat.conversation, cat);
    chat.detach(cat);
    await settle();
    expect(await library.attachments.get(cat.id)).toBeDefined();
  });

  test("is freed with the last chat that has it", async () => {
    const { chat, library, send, cat, note } = await makeMediaChat();
    await send("What?", cat, note);
    await chat.stop();
    const first = chat.conversation.id;
    chat.open();
    await send("And this?", cat);
    await chat.stop();
    const second = chat.conversation.id;
    await chat.delete(first);
    expect([await library.attachments.get(cat.id), await library.attachments.get(note.id)].map(Boolean)).toEqual([true, false]);
    await chat.delete(second);
    expect(await library.attachments.get(cat.id)).toBeUndefined();
  });

  test("that nothing has is deleted after a day; drafts keep theirs", async () => {
    const asked: unknown[] = [];
    const database = {
      attachmentsBefore: async (time: number) => (asked.push(time), ["old", "drafted"]),
      deleteAttachments: async (ids: string[]) => void asked.push(ids),
    } as unknown as ConversationDatabase;
    await new AttachmentStore(database).sweep(new Set(["drafted"]), 100_000_000);
    expect(asked).toEqual([100_000_000 - 86_400_000, ["old"]]);
  });

  test("is kept in memory if the browser stores no more", async () => {
    const full = { addAttachment: () => Promise.reject(new DOMException("full", "QuotaExceededError")), attachment: async () => undefined } as unknown as ConversationDatabase;
    const store = new AttachmentStore(full);
    const { id, lasting } = await store.add(new Blob(["cat"]));
    expect([lasting, await (await store.get(id))?.text()]).toEqual([false, "cat"]);
  });

  test("is looked up for the prompt in order", async () => {
    const store = { get: async (id: string) => new Blob([id]) };
    const [message] = await withMedia([{ role: "user", content: "x", attachments: [NOTE, CAT, { ...CAT, id: "dog" }] }], store);
    expect(await asText([message])).toEqual([["user", "x", "cat", "dog", "note"]]);
    expect(message).not.toHaveProperty("attachments");
  });
});

describe("drafts", () => {
  test("keep their attachments over a reload; damaged ones are ignored", () => {
    const conversation = newConversation(0);
    const drafts = new Drafts();
    drafts.attach(conversation, CAT, NOTE);
    drafts.detach(conversation, "cat");
    expect(new Drafts().attachments(conversation)).toEqual([NOTE]);
    expect([...new Drafts().attached]).toEqual(["note"]);
    localStorage.setItem("rullama.drafts.attachments", JSON.stringify({ new: [NOTE, { id: 1 }, "x"], other: "y" }));
    expect(new Drafts().attachments(conversation)).toEqual([NOTE]);
    localStorage.setItem("rullama.drafts.attachments", "{");
    expect(new Drafts().attachments(conversation)).toEqual([]);
  });

  test("are taken as a whole, and given back before what was written meanwhile", () => {
    const conversation = newConversation(0);
    const drafts = new Drafts();
    drafts.set(conversation, "first");
    drafts.attach(conversation, CAT);
    const taken = drafts.take(conversation);
    expect([drafts.get(conversation), drafts.attachments(conversation)]).toEqual(["", []]);
    drafts.set(conversation, "second");
    drafts.attach(conversation, NOTE);
    drafts.giveBack(conversation, taken);
    expect([drafts.get(conversation), drafts.attachments(conversation)]).toEqual(["first\n\nsecond", [CAT, NOTE]]);
  });
});

describe("the names of attachments", () => {
  const conversation = newConversation(0);
  conversation.messages.push({ id: "q", parent: null, role: "user", content: "What is this?", attachments: [CAT, NOTE], createdAt: 0, state: "complete" });

  test("are in the Markdown", () => {
    expect(markdownText(conversation)).toBe("# New chat\n\n## You\n\n*(image: cat.png)* *(sound: note.wav)*\n\nWhat is this?\n");
  });

  test("are found by the search", () => {
    expect(search([conversation], "cat.PNG")).toMatchObject([{ excerpt: "What is this? cat.png note.wav" }]);
    expect(search([conversation], "dog")).toEqual([]);
  });
});
