import type { EngineInfo } from "rullama";
import { afterEach, describe, expect, test, vi } from "vitest";
import { attachFiles } from "../../src/attach/attach";
import { clock, openDevice } from "../../src/attach/recorder";
import { reasonAgainst, reasonAgainstAny, sensesOf } from "../../src/attach/senses";
import { wavFile } from "../../src/attach/wav";
import { MOST_ATTACHMENTS, MOST_BYTES } from "../../src/chat/attachments";
import { contentsOf } from "../../src/chat/export";
import { importChats } from "../../src/chat/import";
import { exportText, importText } from "../../src/chat/transfer";
import { add, newConversation, type Conversation } from "../../src/chat/tree";
import type { ModelHost } from "../../src/model/host";
import type { Parts } from "../../src/ui/parts";
import { shownNotices } from "../../src/ui/notices";
import { makeChat } from "./fake-chat";

afterEach(() => vi.unstubAllGlobals());

const png = (name: string, bytes = 4) => new File([new Uint8Array(bytes)], name, { type: "image/png" });
const wav = (name: string) => new File(["wave"], name, { type: "audio/wav" });

/** As much of a browser as examines files: images of this size, sounds of this length. */
function stubDecoders({ width = 640, height = 480, seconds = 2 } = {}) {
  vi.stubGlobal("createImageBitmap", async (content: Blob) => {
    if (content.size === 0) {
      throw new DOMException("no image", "InvalidStateError");
    }
    return { width, height, close: () => {} };
  });
  class Player {
    duration = seconds;
    #loaded = () => {};
    addEventListener(name: string, listener: () => void) {
      this.#loaded = name === "loadedmetadata" ? listener : this.#loaded;
    }
    set src(_: string) {
      this.#loaded();
    }
    removeAttribute() {}
  }
  vi.stubGlobal("Audio", Player);
  vi.stubGlobal("OfflineAudioContext", class {
    decodeAudioData = async () => ({ duration: seconds });
  });
}

/** The chat's parts with a loaded model that takes these; undefined without a model. */
async function makeParts(media?: Partial<EngineInfo["media"]>) {
  const { chat, library } = await makeChat();
  const state = media ? { kind: "ready", label: "The model", engine: { info: { media } } } : { kind: "empty" };
  const parts = { chat, library, host: { state }, go: { models: () => {} } } as unknown as Parts;
  const attached = () => chat.drafts.attachments(chat.conversation).map(({ name, medium, width, seconds }) => [name, medium, width ?? seconds]);
  const noticed = () => shownNotices().map(({ text }) => text);
  shownNotices().forEach((notice) => notice.remove());
  return { parts, attached, noticed };
}

describe("files that are attached", () => {
  test("become part of the draft, with what is known about them", async () => {
    stubDecoders();
    const { parts, attached, noticed } = await makeParts();
    await attachFiles(parts, [png("cat.png"), wav("note.wav")]);
    expect([attached(), noticed()]).toEqual([[["cat.png", "image", 640], ["note.wav", "audio", 2]], []]);
    const [cat] = parts.chat.drafts.attachments(parts.chat.conversation);
    expect((await parts.library.attachments.get(cat?.id ?? ""))?.type).toBe("image/png");
  });

  test("that can't be used give an error each, and the others are attached", async () => {
    stubDecoders({ seconds: 31 });
    const { parts, attached, noticed } = await makeParts();
    const large = Object.defineProperty(png("large.png"), "size", { value: MOST_BYTES + 1 });
    await attachFiles(parts, [png("broken.png", 0), wav("long.wav"), new File(["x"], "notes.txt", { type: "text/plain" }), large, png("cat.png")]);
    expect(attached()).toEqual([["cat.png", "image", 640]]);
    expect(noticed().map((text) => text.split(":")[0])).toEqual([
      "“broken.png” was not attached. This browser can't read the image",
      "“long.wav” was not attached. The sound is too long",
      "“notes.txt” was not attached. This is neither an image nor a sound",
      "“large.png” was not attached. The file is too large",
    ]);
    expect(noticed()[1]).toContain("It has 31 seconds. A model hears up to 30 seconds at once.");
  });

  test("of too many pixels are refused", async () => {
    stubDecoders({ width: 20_000, height: 20_000 });
    const { parts, attached, noticed } = await makeParts();
    await attachFiles(parts, [png("map.png")]);
    expect([attached(), noticed()]).toEqual([[], [expect.stringContaining("20,000 × 20,000 pixels")]]);
  });

  test("are refused by a model without that sense, which is said plainly; the draft stays", async () => {
    stubDecoders();
    const { parts, attached, noticed } = await makeParts({ image: false, audio: false });
    parts.chat.drafts.set(parts.chat.conversation, "What is this?");
    await attachFiles(parts, [png("cat.png")]);
    expect([attached(), parts.chat.drafts.get(parts.chat.conversation)]).toEqual([[], "What is this?"]);
    expect(noticed()).toEqual(["The model reads text only. Images and sounds need a model that takes them."]);
  });

  test("are limited in number", async () => {
    stubDecoders();
    const { parts, attached, noticed } = await makeParts();
    await attachFiles(parts, Array.from({ length: MOST_ATTACHMENTS + 2 }, (_, index) => png(`${index}.png`)));
    expect([attached().length, noticed()]).toEqual([MOST_ATTACHMENTS, [`A message can have ${MOST_ATTACHMENTS} images and sounds. “${MOST_ATTACHMENTS}.png” was not attached.`]]);
  });
});

describe("what the loaded model takes", () => {
  const hostOf = (media: unknown) => ({ state: { kind: "ready", label: "Tiny", engine: { info: { media } } } }) as unknown as ModelHost;

  test("is what it says of itself; without a model everything is possible", () => {
    expect(sensesOf({ state: { kind: "empty" } })).toMatchObject({ image: true, audio: true, longest: 30 });
    expect(sensesOf(hostOf({ image: true, audio: false, longestSound: 0 }))).toMatchObject({ image: true, audio: false, longest: 30 });
    // An engine from before images and sounds.
    expect(sensesOf(hostOf(undefined))).toMatchObject({ image: false, audio: false });
  });

  test("has an error message in plain words", () => {
    const senses = sensesOf(hostOf({ image: true, audio: false, longestSound: 0 }));
    expect([reasonAgainst("image", senses), reasonAgainst("audio", senses)]).toEqual([undefined, "Tiny takes no sounds."]);
    const attachment = { id: "a", name: "a", type: "", bytes: 1 };
    expect(reasonAgainstAny([{ ...attachment, medium: "image" }, { ...attachment, medium: "audio" }], senses)).toBe("Tiny takes no sounds.");
    expect(reasonAgainstAny([{ ...attachment, medium: "image" }], senses)).toBeUndefined();
  });
});

describe("a recording", () => {
  test("is a WAV file of 16 bits; what is too loud is clipped", async () => {
    const view = new DataView(await wavFile(new Float32Array([0, 1, -1, 2, 0.5]), 16_000).arrayBuffer());
    const text = (at: number) => String.fromCharCode(...new Uint8Array(view.buffer, at, 4));
    expect([text(0), text(8), text(12), text(36)]).toEqual(["RIFF", "WAVE", "fmt ", "data"]);
    expect([view.getUint32(4, true), view.getUint16(22, true), view.getUint32(24, true), view.getUint16(34, true), view.getUint32(40, true)]).toEqual([46, 1, 16_000, 16, 10]);
    expect([0, 1, 2, 3, 4].map((index) => view.getInt16(44 + 2 * index, true))).toEqual([0, 32767, -32767, 32767, 16384]);
    expect(clock(new Date(2026, 0, 1, 9, 5, 30))).toBe("090530");
  });

  test.each([
    ["NotAllowedError", "capture.denied"],
    ["NotFoundError", "capture.missing"],
    ["NotReadableError", "capture.busy"],
    ["TypeError", "capture.unavailable"],
  ])("that ends with %s is explained", async (name, code) => {
    vi.stubGlobal("navigator", { mediaDevices: { getUserMedia: () => Promise.reject(new DOMException("no", name)) } });
    await expect(openDevice({ audio: true })).rejects.toMatchObject({ code, details: { device: "microphone" } });
  });

  test("needs https", async () => {
    vi.stubGlobal("navigator", {});
    vi.stubGlobal("isSecureContext", false);
    await expect(openDevice({ video: true })).rejects.toMatchObject({ code: "capture.insecure", details: { device: "camera" } });
  });
});

describe("chats with images and sounds in a file", () => {
  /** A chat whose two questions share an image. */
  async function makeExport() {
    const { library } = await makeChat();
    const { id } = await library.attachments.add(new Blob(["cat"], { type: "image/png" }));
    const image = { id, medium: "image" as const, name: "cat.png", type: "image/png", bytes: 3, width: 64, height: 48 };
    const conversation = newConversation(0);
    for (const [index, content] of ["What?", "Again?"].entries()) {
      add(conversation, { id: `q${index}`, parent: index === 0 ? null : "q0", role: "user", content, attachments: [image], createdAt: 0, state: "complete" });
    }
    const text = exportText([conversation], 0, await contentsOf([conversation], library.attachments));
    return { library, conversation, image, text };
  }
  const changed = (text: string, change: (file: any) => void) => {
    const file = JSON.parse(text);
    change(file);
    return JSON.stringify(file);
  };

  test("come back with their content, under new keys", async () => {
    const { conversation, image, text } = await makeExport();
    expect(JSON.parse(text)).toMatchObject({ version: 2, attachments: { [image.id]: btoa("cat") } });
    const { library } = await makeChat();
    expect(await importChats(library, new Blob([text]))).toBe(1);
    const [imported] = library.all() as [Conversation];
    const attachments = imported.messages.map((message) => message.attachments?.[0]);
    expect(attachments[0]).toEqual({ ...image, id: attachments[1]?.id });
    expect(attachments[0]?.id).not.toBe(image.id);
    const content = await library.attachments.get(attachments[0]?.id ?? "");
    expect([content?.type, await content?.text()]).toEqual(["image/png", "cat"]);
    expect(imported.messages.map(({ content: words }) => words)).toEqual(conversation.messages.map(({ content: words }) => words));
  });

  test("without any are of version 1, which older apps read", () => {
    expect(JSON.parse(exportText([newConversation(0)], 0))).not.toHaveProperty("attachments");
    expect(JSON.parse(exportText([newConversation(0)], 0)).version).toBe(1);
  });

  test("whose content is not in the file never show another chat's", async () => {
    const { library, image, text } = await makeExport();
    await importChats(library, new Blob([changed(text, (file) => (file.attachments = {}))]));
    const imported = library.all().at(-1);
    const id = imported?.messages[0]?.attachments?.[0]?.id ?? "";
    expect([id === image.id, await library.attachments.get(id)]).toEqual([false, undefined]);
  });

  test.each([
    ["no base64", (file: any) => Object.keys(file.attachments).forEach((id) => (file.attachments[id] = "§"))],
    ["a number for base64", (file: any) => Object.keys(file.attachments).forEach((id) => (file.attachments[id] = 1))],
    ["a list of contents", (file: any) => (file.attachments = [])],
    ["a type that could be a page", (file: any) => (file.conversations[0].messages[0].attachments[0].type = "text/html")],
    ["a drawing", (file: any) => (file.conversations[0].messages[0].attachments[0].type = "image/svg+xml")],
    ["too many", (file: any) => (file.conversations[0].messages[0].attachments = Array(17).fill(file.conversations[0].messages[0].attachments[0]))],
    ["too large", (file: any) => Object.keys(file.attachments).forEach((id) => (file.attachments[id] = "A".repeat(70_000_000)))],
  ])("with %s are refused, and nothing is imported", async (_, change) => {
    const { text } = await makeExport();
    expect(() => importText(changed(text, change), new Set())).toThrow(expect.objectContaining({ code: "import.invalid" }));
  });

  test("that are too large for a browser are refused before they are read", async () => {
    const { library } = await makeChat();
    await expect(importChats(library, { size: 500_000_000 } as Blob)).rejects.toMatchObject({ code: "import.too_large" });
    const large = { get: async () => ({ size: 400_000_000 }) as Blob };
    const { conversation } = await makeExport();
    await expect(contentsOf([conversation], large)).rejects.toMatchObject({ code: "export.too_large" });
  });
});
