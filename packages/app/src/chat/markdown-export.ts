// A chat as a Markdown document: the shown branch, with the model that wrote each answer.

import { titleOfAttachment } from "./attachments";
import { path, type ChatMessage, type Conversation } from "./tree";

export function markdownText(conversation: Conversation): string {
  const system = conversation.system.trim();
  const parts = [
    `# ${oneLine(conversation.title)}`,
    system === "" ? "" : `**System prompt**\n\n${quote(system)}`,
    ...path(conversation).map(messageText),
  ];
  return `${parts.filter((part) => part !== "").join("\n\n")}\n`;
}

function messageText({ role, content, attachments = [], model, state, trimmed }: ChatMessage): string {
  const heading = role === "user" ? "## You" : `## ${oneLine(model ?? "Model")}`;
  const note = trimmed ? `*The ${trimmed.dropped} oldest messages were left out from here on.*` : "";
  const summary = trimmed?.summary ? quote(`Summary: ${trimmed.summary}`) : "";
  const ending = state === "stopped" ? "*(stopped)*" : state === "failed" ? "*(failed)*" : "";
  const attached = attachments.map((one) => `*(${one.medium === "image" ? "image" : "sound"}: ${oneLine(titleOfAttachment(one))})*`).join(" ");
  return [heading, note, summary, attached, content, ending].filter((part) => part !== "").join("\n\n");
}

function quote(text: string): string {
  return text
    .split("\n")
    .map((line) => `> ${line}`.trimEnd())
    .join("\n");
}

function oneLine(text: string): string {
  return text.replace(/\s+/g, " ").trim();
}

/** A file name from a title: letters, digits and dashes. */
export function fileNameOf(title: string): string {
  const words = title.normalize("NFKD").replace(/\p{M}/gu, "").replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-+|-+$/g, "");
  return words.slice(0, 60).replace(/-+$/, "").toLowerCase() || "chat";
}
