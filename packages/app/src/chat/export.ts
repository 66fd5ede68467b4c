// Saves chats as files: JSON to import them again, Markdown to read them elsewhere.

import { fileDate } from "../text/format";
import { saveFile } from "../ui/files";
import { notify } from "../ui/notices";
import { fileNameOf, markdownText } from "./markdown-export";
import { exportText } from "./transfer";
import type { Conversation } from "./tree";

export function exportJson(conversations: readonly Conversation[]): void {
  if (conversations.length === 0) {
    notify("There are no chats to export yet.");
    return;
  }
  const now = Date.now();
  const blob = new Blob([exportText(conversations, now)], { type: "application/json" });
  saveFile(`rullama-conversations-${fileDate(now)}.json`, blob);
}

export function exportMarkdown(conversation: Conversation): void {
  saveFile(`${fileNameOf(conversation.title)}.md`, new Blob([markdownText(conversation)], { type: "text/markdown" }));
}
