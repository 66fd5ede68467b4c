// Imports chats from a file, with their images and sounds.

import type { AttachmentStore } from "./attachment-store";
import type { Library } from "./library";
import { ImportError, importText, type Imported } from "./transfer";
import type { Conversation } from "./tree";

/** The most bytes of a file: browsers hold no longer texts. */
export const MOST_IMPORTED = 450_000_000;

/** Saves the chats of a file; gives how many they were. */
export async function importChats(library: Library, file: Blob): Promise<number> {
  if (file.size > MOST_IMPORTED) {
    throw new ImportError(`the file has ${file.size} bytes; ${MOST_IMPORTED} are allowed`, "import.too_large");
  }
  const imported = importText(await file.text(), new Set(library.all().map(({ id }) => id)));
  await keepAttachments(imported, library.attachments);
  for (const conversation of imported.conversations) {
    await library.save(conversation);
  }
  return imported.conversations.length;
}

/** Stores what is attached to the chats, under new keys: those of the file may be taken. */
export async function keepAttachments({ conversations, attachments }: Imported, store: Pick<AttachmentStore, "add">): Promise<void> {
  const keys = new Map<string, string>();
  for (const [id, content] of attachments) {
    keys.set(id, (await store.add(content)).id);
  }
  for (const message of conversations.flatMap(({ messages }: Conversation) => messages)) {
    if (message.attachments) {
      // Without content in the file it has none here either, so its key must not be one that exists.
      message.attachments = message.attachments.map((one) => ({ ...one, id: keys.get(one.id) ?? `missing-${one.id}` }));
    }
  }
}
