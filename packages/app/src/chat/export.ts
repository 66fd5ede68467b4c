// Saves chats as files: JSON to import them again, Markdown to read them elsewhere.

import { fileDate } from "../text/format";
import { saveFile } from "../ui/files";
import { notify, notifyError } from "../ui/notices";
import type { AttachmentStore } from "./attachment-store";
import { attachedTo } from "./attachments";
import { toBase64 } from "./base64";
import { fileNameOf, markdownText } from "./markdown-export";
import type { Conversation } from "./tree";

/** The most bytes of images and sounds in one file: browsers hold no longer texts than their base64. */
const MOST_EXPORTED = 300_000_000;

export async function exportJson(conversations: readonly Conversation[], store: Pick<AttachmentStore, "get">): Promise<void> {
  if (conversations.length === 0) {
    notify("There are no chats to export yet.");
    return;
  }
  const now = Date.now();
  try {
    const { exportText } = await import("./transfer");
    const text = exportText(conversations, now, await contentsOf(conversations, store));
    saveFile(`rullama-conversations-${fileDate(now)}.json`, new Blob([text], { type: "application/json" }));
  } catch (error) {
    notifyError(error);
  }
}

export function exportMarkdown(conversation: Conversation): void {
  saveFile(`${fileNameOf(conversation.title)}.md`, new Blob([markdownText(conversation)], { type: "text/markdown" }));
}

/** Everything that is attached to the chats, as base64. What is gone is left out. */
export async function contentsOf(conversations: readonly Conversation[], store: Pick<AttachmentStore, "get">): Promise<Record<string, string>> {
  const contents: Record<string, string> = {};
  let bytes = 0;
  for (const id of new Set(conversations.flatMap(({ messages }) => attachedTo(messages)))) {
    const content = await store.get(id);
    bytes += content?.size ?? 0;
    if (bytes > MOST_EXPORTED) {
      throw Object.assign(new Error(`the images and sounds have more than ${MOST_EXPORTED} bytes`), { code: "export.too_large" });
    }
    if (content) {
      contents[id] = await toBase64(content);
    }
  }
  return contents;
}
