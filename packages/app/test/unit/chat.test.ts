import type { Message } from "rullama";
import { describe, expect, test } from "vitest";
import { partialText } from "../../src/chat/continuation";
import { Drafts } from "../../src/chat/drafts";
import { fileNameOf, markdownText } from "../../src/chat/markdown-export";
import { promptOf } from "../../src/chat/prompt";
import { exportText, importText } from "../../src/chat/transfer";
import { add, newConversation, path, type ChatMessage, type Conversation } from "../../src/chat/tree";
import { planTrim, summaryPrompt } from "../../src/chat/trim";
import { makeChat, settle } from "./fake-chat";

/** A chat of questions and answers: q1, a1, q2, a2, … */
function chatOf(turns: number): Conversation {
  const conversation = newConversation(0);
  let parent: string | null = null;
  for (let turn = 1; turn <= turns; turn++) {
    for (const role of ["user", "assistant"] as const) {
      const id: string = `${role === "user" ? "q" : "a"}${turn}`;
      add(conversation, { id, parent, role, content: id, createdAt: turn, state: "complete" });
      parent = id;
    }
  }
  return conversation;
}

describe("a message during a reply", () => {
  test("is queued, and sent when the reply ends", async () => {
    const { chat, replies, send, shown } = await makeChat();
    await send("one");
    await send("two");
    expect([replies.length, chat.queue.of(chat.conversation).map(({ text }) => text)]).toEqual([1, ["two"]]);
    replies[0]?.write("First.");
    replies[0]?.end();
    await settle();
    expect([replies.length, chat.queue.length]).toEqual([2, 0]);
    expect(replies[1]?.request).toEqual([
      { role: "user", content: "one" },
      { role: "assistant", content: "First." },
      { role: "user", content: "two" },
    ]);
    expect(shown()).toEqual([["one", "complete"], ["First.", "complete"], ["two", "complete"], ["", "writing"]]);
    expect(path(chat.conversation)[1]?.model).toBe("a model");
  });

  test("can be removed, or taken back into the draft", async () => {
    const { chat, replies, send } = await makeChat();
    await send("one");
    await send("two");
    await send("three");
    chat.drafts.set(chat.conversation, "four");
    const [two, three] = chat.queue.of(chat.conversation);
    chat.queue.remove(two?.id ?? "");
    chat.unqueue(three?.id ?? "");
    expect([chat.queue.length, chat.drafts.get(chat.conversation)]).toEqual([0, "three\n\nfour"]);
    replies[0]?.end();
    await settle();
    expect(replies.length).toBe(1);
  });

  test("waits after an error, and is sent after a stop", async () => {
    const { chat, replies, send, shown } = await makeChat();
    await send("one");
    await send("two");
    replies[0]?.fail("device.lost");
    await settle();
    expect([replies.length, chat.queue.length]).toEqual([1, 1]);
    void chat.sendQueued(chat.queue.of(chat.conversation)[0]?.id ?? "");
    await settle();
    expect(replies.length).toBe(2);
    await send("three");
    await chat.stop();
    await settle();
    expect([replies.length, shown().at(-2)]).toEqual([3, ["three", "complete"]]);
  });

  test("becomes a draft again if the page is reloaded", async () => {
    const { chat, send } = await makeChat();
    chat.drafts.set(chat.conversation, "");
    await send("one");
    await send("two");
    await send("three");
    // Without a database the chat is gone after a reload; its messages are not.
    const { chat: reloaded } = await makeChat();
    expect([reloaded.queue.length, reloaded.drafts.get(reloaded.conversation)]).toEqual([0, "two\n\nthree"]);
    const { chat: again } = await makeChat();
    expect(again.drafts.get(again.conversation)).toBe("two\n\nthree");
  });

  test("an edited question comes before the queue", async () => {
    const { chat, replies, send } = await makeChat();
    await send("one");
    await send("two");
    void chat.edit(path(chat.conversation)[0]?.id ?? "", "another one");
    await settle();
    expect([replies.length, replies[1]?.request, chat.queue.length]).toEqual([2, [{ role: "user", content: "another one" }], 1]);
  });
});

describe("an answer that was cut off", () => {
  test("is continued where it ended", async () => {
    const { chat, replies, send, shown } = await makeChat();
    await send("count");
    replies[0]?.write("1, 2,");
    replies[0]?.end("length");
    await settle();
    const answer = path(chat.conversation)[1] as ChatMessage;
    expect([answer.cut, chat.canContinue(answer)]).toEqual([true, true]);
    void chat.continue(answer.id);
    await settle();
    expect(replies[1]?.request).toBe("user: count1, 2,");
    expect(replies[1]?.options).not.toHaveProperty("think");
    replies[1]?.write(" 3");
    replies[1]?.end();
    await settle();
    expect(shown()).toEqual([["count", "complete"], ["1, 2, 3", "complete"]]);
    expect([answer.cut, chat.canContinue(answer), answer.speed?.generatedTokens]).toEqual([undefined, false, 2]);
  });

  test("inside its thought goes on thinking", async () => {
    const { chat, replies, send } = await makeChat();
    await send("why");
    await chat.stop();
    const answer = path(chat.conversation)[1] as ChatMessage;
    answer.thought = "Hm";
    void chat.continue(answer.id);
    await settle();
    expect(replies[1]?.request).toBe("user: why<|channel>thought\nHm");
    replies[1]?.write(", yes");
    replies[1]?.write("", 99);
    replies[1]?.write("Because.");
    replies[1]?.end();
    await settle();
    expect(answer).toMatchObject({ thought: "Hm, yes", content: "Because." });
  });

  test("has its thought before its text", () => {
    expect(partialText({ content: "So", thought: "Hm.\n" })).toBe("<|channel>thought\nHm.\n<channel|>So");
    expect(partialText({ content: "So" })).toBe("So");
  });
});

describe("a full context", () => {
  /** Ten tokens for each message. */
  const measure = async (messages: Message[]) => messages.length * 10;

  test("loses its oldest turns, as few as possible", async () => {
    const conversation = chatOf(4);
    const plan = await planTrim(conversation, "q4", 100, measure);
    // Four messages are 40 tokens, less than half of the context.
    expect(plan).toEqual({ first: "q3", dropped: 4 });
    expect(promptOf(conversation, "q4", plan).map(({ content }) => content)).toEqual(["q3", "a3", "q4"]);
    expect(await planTrim(conversation, "q4", 25, measure)).toEqual({ first: "q4", dropped: 6 });
    expect(await planTrim(conversation, "q4", 10, measure)).toBe(undefined);
    expect(await planTrim(conversation, "q1", 10, measure)).toBe(undefined);
  });

  test("stays trimmed in later turns, and can be trimmed further", async () => {
    const conversation = chatOf(3);
    (conversation.messages[5] as ChatMessage).trimmed = { first: "q2", dropped: 2, summary: "They met." };
    conversation.system = "Be brief.";
    expect(promptOf(conversation)).toEqual([
      { role: "system", content: "Be brief.\n\nSummary of the earlier conversation:\nThey met." },
      ...["q2", "a2", "q3", "a3"].map((content) => ({ role: content.startsWith("q") ? "user" : "assistant", content })),
    ]);
    add(conversation, { id: "q4", parent: "a3", role: "user", content: "q4", createdAt: 9, state: "complete" });
    const plan = await planTrim(conversation, "q4", 100, measure);
    expect(plan).toEqual({ first: "q3", dropped: 4 });
    const [request] = await summaryPrompt(conversation, "q4", plan as NonNullable<typeof plan>, 100, measure);
    expect(request?.content).toMatch(/Earlier: They met\.\n\nUser: q2\n\nAssistant: a2$/);
  });

  test("makes room for the question that failed, with a summary if that is wanted", async () => {
    const { chat, replies, send } = await makeChat();
    for (const text of ["word ".repeat(30), "word ".repeat(30)]) {
      await send(text.trim());
      replies.at(-1)?.write("Yes.");
      replies.at(-1)?.end();
      await settle();
    }
    await send("And now?");
    replies.at(-1)?.fail("context.overflow");
    await settle();
    void chat.makeRoom(path(chat.conversation).at(-1)?.id ?? "", "summarise");
    await settle();
    const answer = path(chat.conversation).at(-1) as ChatMessage;
    expect([path(chat.conversation).length, answer.trimmed]).toEqual([6, { first: path(chat.conversation)[2]?.id, dropped: 2, summary: "" }]);
    expect(replies.at(-1)?.options.think).toBe(false);
    replies.at(-1)?.write("Many words.");
    replies.at(-1)?.end();
    await settle();
    expect(answer.trimmed?.summary).toBe("Many words.");
    expect((replies.at(-1)?.request as Message[]).map(({ role }) => role)).toEqual(["system", "user", "assistant", "user"]);
    await chat.stop();
  });

  test("gets room in its own chat if the user opens another one meanwhile", async () => {
    const { chat, replies, send } = await makeChat();
    for (const text of ["word ".repeat(60), "And now?"]) {
      await send(text.trim());
      replies.at(-1)?.write("Yes.");
      replies.at(-1)?.end();
      await settle();
    }
    const { conversation } = chat;
    for (const begun of ["", "Well,"]) {
      const failed = path(conversation).at(-1) as ChatMessage;
      Object.assign(failed, { content: begun, state: "failed" });
      const before = replies.length;
      void chat.makeRoom(failed.id, "drop");
      chat.open();
      await settle();
      expect(replies.length).toBe(before + 1);
      expect(path(conversation).at(-1)).toMatchObject({ state: "writing", content: begun, trimmed: { dropped: 2 } });
      expect(path(chat.conversation)).toEqual([]);
      await chat.stop();
      chat.open(conversation.id);
      expect(chat.conversation).toBe(conversation);
    }
    const count = replies.length;
    const room = chat.makeRoom(path(conversation).at(-1)?.id ?? "", "drop");
    await chat.delete(conversation.id);
    await room;
    chat.open(conversation.id);
    expect([replies.length, path(chat.conversation)]).toEqual([count, []]);
  });

  test("is told if the message alone is too long", async () => {
    const { chat, replies, send } = await makeChat();
    await send("word ".repeat(200).trim());
    replies[0]?.fail("context.overflow");
    await settle();
    const answer = path(chat.conversation)[1] as ChatMessage;
    await chat.makeRoom(answer.id, "drop");
    expect(answer.error?.code).toBe("context.message");
  });

  test.each(["content", "thought"] as const)("counts the %s of an answer that is continued", async (part) => {
    const { chat, replies, send } = await makeChat();
    for (const text of ["word ".repeat(20), "word ".repeat(20), "And now?"]) {
      await send(text.trim());
      replies.at(-1)?.write("Yes.");
      replies.at(-1)?.end();
      await settle();
    }
    const answer = path(chat.conversation).at(-1) as ChatMessage;
    // Without the answer, it would be enough to leave out the first turn.
    Object.assign(answer, { content: "", [part]: "word ".repeat(80).trim(), state: "failed" });
    void chat.makeRoom(answer.id, "drop");
    await settle();
    expect([answer.state, answer.trimmed?.dropped]).toEqual(["writing", 4]);
    expect(replies.at(-1)?.request).toMatch(/^user: And now\?/);
    await chat.stop();
  });

  test("is told if the answer fills it, and continues once the context is larger", async () => {
    const { chat, engine, replies, send } = await makeChat();
    await send("count");
    replies[0]?.write("1, ".repeat(120));
    replies[0]?.end("length");
    await settle();
    const answer = path(chat.conversation)[1] as ChatMessage;
    void chat.continue(answer.id);
    await settle();
    replies[1]?.fail("context.overflow");
    await settle();
    expect(chat.canContinue(answer)).toBe(false);
    await chat.makeRoom(answer.id, "drop");
    expect([answer.error?.code, replies.length, chat.canContinue(answer)]).toEqual(["context.answer", 2, true]);
    engine.info.context = 1000;
    void chat.continue(answer.id);
    await settle();
    replies[2]?.write(" 2");
    replies[2]?.end();
    await settle();
    expect(answer).toMatchObject({ state: "complete", content: `${"1, ".repeat(120).trim()} 2` });
    expect(answer.error).toBe(undefined);
  });

  test("is exported and imported", () => {
    const conversation = chatOf(2);
    (conversation.messages[3] as ChatMessage).trimmed = { first: "q2", dropped: 2, summary: "They met." };
    expect(importText(exportText([conversation], 0), new Set()).conversations).toEqual([conversation]);
  });
});

describe("drafts", () => {
  test("belong to their chat and survive a reload", () => {
    const [empty, one, two] = [newConversation(0), chatOf(1), chatOf(1)];
    const drafts = new Drafts();
    drafts.set(empty, "new");
    drafts.set(one, "for one");
    expect([drafts.get(empty), drafts.get(one), drafts.get(two)]).toEqual(["new", "for one", ""]);
    const reloaded = new Drafts();
    // A chat without messages has another id after a reload.
    expect([reloaded.get(newConversation(1)), reloaded.get(one)]).toEqual(["new", "for one"]);
    reloaded.set(one, "");
    // The other tab does not bring it back.
    drafts.set(two, "for two");
    expect(JSON.parse(localStorage.getItem("rullama.drafts") ?? "")).toEqual({ new: "new", [two.id]: "for two" });
  });

  test("damaged ones are ignored", () => {
    localStorage.setItem("rullama.drafts", '{"new": 1, "a"');
    expect(new Drafts().get(newConversation(0))).toBe("");
  });
});

describe("a chat as Markdown", () => {
  test("has its title, its questions, and its answers with their model", () => {
    const conversation = chatOf(2);
    conversation.title = "A\nchat";
    conversation.system = "Be brief.\nBe kind.";
    Object.assign(conversation.messages[1] as ChatMessage, { model: "gemma4", state: "stopped" });
    (conversation.messages[3] as ChatMessage).trimmed = { first: "q2", dropped: 2, summary: "They met." };
    expect(markdownText(conversation)).toBe(
      [
        "# A chat",
        "**System prompt**",
        "> Be brief.\n> Be kind.",
        "## You",
        "q1",
        "## gemma4",
        "a1",
        "*(stopped)*",
        "## You",
        "q2",
        "## Model",
        "*The 2 oldest messages were left out from here on.*",
        "> Summary: They met.",
        "a2\n",
      ].join("\n\n"),
    );
  });

  test("gets a file name from its title", () => {
    expect(["Why is the sky blue?", "Über / uns", "…", "x".repeat(80)].map(fileNameOf)).toEqual(["why-is-the-sky-blue", "uber-uns", "chat", "x".repeat(60)]);
  });
});
