// The images and sounds of a prompt, as the engine takes them.

import type { ImageBudget, Message } from "rullama";
import { titleOfAttachment, type Attachment } from "./attachments";
import type { AttachmentStore } from "./attachment-store";
import type { PromptMessage } from "./prompt";
import { softTokens } from "./soft-tokens";

/** All images and sounds of a prompt, in the order in which the model reads them. */
export function mediaOf(prompt: readonly PromptMessage[]): Attachment[] {
  return prompt.flatMap(({ attachments = [] }) => attachments);
}

/** The messages with the content of their images and sounds. */
export async function withMedia(prompt: readonly PromptMessage[], store: Pick<AttachmentStore, "get">): Promise<Message[]> {
  const messages: Message[] = [];
  for (const { attachments = [], ...message } of prompt) {
    const contents = async (medium: Attachment["medium"]) => {
      const found: Blob[] = [];
      for (const attachment of attachments.filter((one) => one.medium === medium)) {
        found.push(await contentOf(attachment, store));
      }
      return found;
    };
    const [images, audio] = [await contents("image"), await contents("audio")];
    messages.push({ ...message, ...(images.length > 0 ? { images } : {}), ...(audio.length > 0 ? { audio } : {}) });
  }
  return messages;
}

/** The messages without their images and sounds, for counting their text. */
export function textOnly(prompt: readonly PromptMessage[]): Message[] {
  return prompt.map(({ attachments: _, ...message }) => message);
}

/** The tokens of the images and sounds of a prompt. */
export function mediaTokens(prompt: readonly PromptMessage[], budget: ImageBudget): number {
  return softTokens(mediaOf(prompt), budget);
}

async function contentOf(attachment: Attachment, store: Pick<AttachmentStore, "get">): Promise<Blob> {
  const content = await store.get(attachment.id);
  if (!content) {
    const file = titleOfAttachment(attachment);
    throw Object.assign(new Error(`the content of ${file} is not stored`), { code: "attachment.missing", details: { file } });
  }
  return content;
}
