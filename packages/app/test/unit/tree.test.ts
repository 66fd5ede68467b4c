import { describe, expect, test } from "vitest";
import { baseOf, merge } from "../../src/chat/merge";
import { search } from "../../src/chat/search";
import { exportText, importText } from "../../src/chat/transfer";
import { add, before, newConversation, path, place, removeLeaf, settle, show, titleOf, type ChatMessage } from "../../src/chat/tree";

let time = 1000;
function message(id: string, parent: string | null, role: "user" | "assistant", content = id): ChatMessage {
  time += 1;
  return { id, parent, role, content, createdAt: time, state: "complete" };
}

/** A question with two answers, the first of which was followed up, and an edited question. */
function example() {
  const conversation = newConversation(1000, "Be brief.");
  add(conversation, message("q1", null, "user", "Why is the sky blue?"));
  add(conversation, message("a1", "q1", "assistant"));
  add(conversation, message("q2", "a1", "user"));
  add(conversation, message("a2", "q1", "assistant"));
  add(conversation, message("e1", null, "user", "Why is the sea blue?"));
  return conversation;
}

const ids = (messages: ChatMessage[]) => messages.map(({ id }) => id);

describe("the tree", () => {
  test("what was added last is shown", () => {
    const conversation = example();
    expect(ids(path(conversation))).toEqual(["e1"]);
    expect(place(conversation, "e1")).toEqual({ index: 1, count: 2, ids: ["q1", "e1"] });
  });

  test("switching back finds what followed", () => {
    const conversation = example();
    show(conversation, "q1");
    expect(ids(path(conversation))).toEqual(["q1", "a2"]);
    show(conversation, "a1");
    expect(ids(path(conversation))).toEqual(["q1", "a1", "q2"]);
    show(conversation, "e1");
    show(conversation, "q1");
    expect(ids(path(conversation))).toEqual(["q1", "a1", "q2"]);
    expect(ids(before(conversation, "q2"))).toEqual(["q1", "a1"]);
    expect(before(conversation, "q1")).toEqual([]);
  });

  test("the first message gives the title, until somebody does", () => {
    const conversation = example();
    expect(conversation.title).toBe("Why is the sea blue?");
    conversation.named = true;
    add(conversation, message("e2", null, "user", "Another"));
    expect(conversation.title).toBe("Why is the sea blue?");
    expect(titleOf("\n  \n a   b \nc")).toBe("a b");
    expect(titleOf("  ")).toBe("New chat");
    expect(titleOf("x".repeat(100))).toHaveLength(60);
  });

  test("what was being written is settled", () => {
    const conversation = example();
    add(conversation, { ...message("w", "e1", "assistant"), state: "writing" });
    expect(settle(conversation)).toBe(true);
    expect(conversation.messages.at(-1)?.state).toBe("stopped");
    expect(settle(conversation)).toBe(false);
  });
});

describe("search", () => {
  test("all words, any case, accents or not, newest first", () => {
    const [first, second] = [example(), newConversation(5000)];
    add(second, message("x", null, "user", `Über ${"den ".repeat(30)} Himmel`));
    expect(search([first, second], "").map(({ conversation }) => conversation.id)).toEqual([second.id, first.id]);
    expect(search([first, second], "SKY blue").map(({ conversation }) => conversation.id)).toEqual([first.id]);
    expect(search([first, second], "uber himmel")).toHaveLength(1);
    expect(search([first, second], "sky himmel")).toEqual([]);
    expect(search([first], "sky")[0]?.excerpt).toBe("Why is the sky blue?");
    expect(search([second], "himmel")[0]?.excerpt).toMatch(/^….*Himmel$/);
  });
});

describe("export and import", () => {
  test("a round trip keeps everything", () => {
    const conversation = example();
    Object.assign(conversation.messages[1] as ChatMessage, {
      thought: "Hm.",
      model: "m",
      cut: true,
      speed: { promptTokens: 1, reusedTokens: 0, generatedTokens: 2, promptMs: 3.5, generateMs: 4 },
      error: { code: "device.lost", message: "gone" },
    });
    expect(importText(exportText([conversation], 0), new Set()).conversations).toEqual([conversation]);
  });

  test("a taken id is not overwritten", () => {
    const conversation = example();
    const [imported] = importText(exportText([conversation], 0), new Set([conversation.id])).conversations;
    expect(imported?.id).not.toBe(conversation.id);
    expect(imported?.messages).toEqual(conversation.messages);
  });

  const changed = (change: (file: any) => void) => {
    const file = JSON.parse(exportText([example()], 0));
    change(file);
    return JSON.stringify(file);
  };

  test.each([
    ["no JSON", "{"],
    ["another format", changed((file) => (file.format = "x"))],
    ["a newer version", changed((file) => (file.version = 3))],
    ["no list", changed((file) => (file.conversations = {}))],
    ["a role", changed((file) => (file.conversations[0].messages[0].role = "system"))],
    ["a state", changed((file) => (file.conversations[0].messages[0].state = "x"))],
    ["a parent that comes later", changed((file) => file.conversations[0].messages.reverse())],
    ["a message twice", changed((file) => file.conversations[0].messages.push(file.conversations[0].messages[0]))],
    ["a number for a text", changed((file) => (file.conversations[0].messages[0].content = 1))],
    ["null", "null"],
  ])("%s is refused", (_, text) => {
    expect(() => importText(text, new Set())).toThrow(expect.objectContaining({ code: "import.invalid" }));
  });

  test("unknown fields and choices that lead nowhere are dropped", () => {
    const text = changed((file) => {
      file.conversations[0].extra = 1;
      file.conversations[0].messages[0].html = "<b>";
      file.conversations[0].shown.q1 = "nowhere";
      file.conversations[0].messages[1].state = "writing";
    });
    const [conversation] = importText(text, new Set()).conversations;
    expect(conversation).not.toHaveProperty("extra");
    expect(conversation?.messages[0]).not.toHaveProperty("html");
    expect(conversation?.shown).not.toHaveProperty("q1");
    expect(conversation?.messages[1]?.state).toBe("stopped");
  });
});

describe("two tabs that write one conversation", () => {
  /** A conversation in two tabs, and what was stored when both looked. */
  function tabs() {
    const mine = example();
    return { mine, stored: structuredClone(mine), base: baseOf(mine) };
  }
  const nobody = () => false;

  test("keep each other's messages", () => {
    const { mine, stored, base } = tabs();
    add(mine, message("mine", "e1", "assistant"));
    add(stored, message("theirs", "q2", "assistant"));
    const merged = merge(stored, mine, base, (id) => id === "mine");
    expect(ids(merged.messages)).toEqual(["q1", "a1", "q2", "a2", "e1", "theirs", "mine"]);
    // Views and the one who writes hold on to these.
    expect(merged.messages.at(-1)).toBe(mine.messages.at(-1));
    expect(merged.messages[0]).toBe(mine.messages[0]);
  });

  test("take a message from whoever wrote it", () => {
    const { mine, stored, base } = tabs();
    const [a1, theirs] = [mine.messages[1] as ChatMessage, stored.messages[1] as ChatMessage];
    a1.state = "stopped";
    Object.assign(theirs, { state: "writing" });
    expect(merge(stored, mine, base, nobody).messages[1]).toBe(a1);
    theirs.content = "more than before";
    expect(merge(stored, mine, base, nobody).messages[1]).toBe(theirs);
    expect(merge(stored, mine, base, (id) => id === "a1").messages[1]).toBe(a1);
  });

  test("keep each other's names and branches, unless both changed them", () => {
    const { mine, stored, base } = tabs();
    Object.assign(stored, { title: "Theirs", named: true });
    show(stored, "a1");
    mine.system = "Mine";
    expect(merge(stored, mine, base, nobody)).toMatchObject({ title: "Theirs", named: true, system: "Mine", shown: { "": "q1", q1: "a1" } });
    Object.assign(mine, { title: "Mine", named: true });
    expect(merge(stored, mine, base, nobody).title).toBe("Mine");
  });

  test("a message that was taken away here does not come back, unless something follows it", () => {
    const { mine, stored, base } = tabs();
    removeLeaf(mine, "a2");
    expect(ids(merge(stored, mine, base, nobody).messages)).toEqual(["q1", "a1", "q2", "e1"]);
    add(stored, message("q3", "a2", "user"));
    expect(ids(merge(stored, mine, base, nobody).messages)).toEqual(["q1", "a1", "q2", "a2", "e1", "q3"]);
  });
});
