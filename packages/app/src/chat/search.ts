// Searches chats: every word must occur in the title, in a message or in the name of an attachment. Case and accents are ignored.

import type { ChatMessage, Conversation } from "./tree";

export interface Found {
  conversation: Conversation;
  /** The words around the first match, if it is in a message. */
  excerpt: string;
}

const AROUND = 40;

export function search(conversations: readonly Conversation[], query: string): Found[] {
  const words = plain(query).split(/\s+/).filter(Boolean);
  const recent = [...conversations].sort((a, b) => b.updatedAt - a.updatedAt);
  if (words.length === 0) {
    return recent.map((conversation) => ({ conversation, excerpt: "" }));
  }
  return recent.flatMap((conversation) => {
    const texts = [conversation.title, ...conversation.messages.flatMap(textsOf)];
    const everything = plain(texts.join("\n"));
    if (!words.every((word) => everything.includes(word))) {
      return [];
    }
    return [{ conversation, excerpt: excerpt(conversation, words[0] as string) }];
  });
}

function excerpt(conversation: Conversation, word: string): string {
  if (plain(conversation.title).includes(word)) {
    return "";
  }
  for (const message of conversation.messages) {
    const text = textsOf(message).join(" ").replace(/\s+/g, " ");
    const at = plain(text).indexOf(word);
    if (at >= 0) {
      const start = Math.max(0, at - AROUND);
      const end = Math.min(text.length, at + word.length + AROUND);
      return `${start > 0 ? "…" : ""}${text.slice(start, end).trim()}${end < text.length ? "…" : ""}`;
    }
  }
  return "";
}

function textsOf({ content, attachments = [] }: ChatMessage): string[] {
  return [content, ...attachments.map(({ name }) => name)];
}

function plain(text: string): string {
  return text.normalize("NFD").replace(/\p{M}/gu, "").toLowerCase();
}
