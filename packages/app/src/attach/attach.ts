// Attaches files to the draft of the shown chat: from the file dialog, the clipboard, a drop, the camera or the microphone.

import { MOST_ATTACHMENTS, mediumOf, typeOf, type Attachment } from "../chat/attachments";
import { explain } from "../text/errors";
import { announce, notify } from "../ui/notices";
import type { Parts } from "../ui/parts";
import { reasonAgainst, sensesOf } from "./senses";

/** Whether a file is an image or a sound. */
export function isMedia(file: File): boolean {
  return typeOf(file) !== undefined;
}

/** Attaches what can be attached, and says of the rest why not. */
export async function attachFiles(parts: Parts, files: readonly File[]): Promise<void> {
  const { chat } = parts;
  const { conversation } = chat;
  const attached: string[] = [];
  for (const file of files) {
    const senses = sensesOf(parts.host);
    const type = typeOf(file);
    const reason = type === undefined ? undefined : reasonAgainst(mediumOf(type), senses);
    if (reason !== undefined) {
      notify(reason, { label: "Models", run: () => parts.go.models() });
    } else if (chat.drafts.attachments(conversation).length >= MOST_ATTACHMENTS) {
      notify(`A message can have ${MOST_ATTACHMENTS} images and sounds. “${file.name}” was not attached.`);
      break;
    } else {
      try {
        chat.drafts.attach(conversation, await keepFile(parts, file, senses.longest));
        attached.push(file.name);
      } catch (error) {
        const { title, text } = explain(error);
        notify(`“${file.name}” was not attached. ${title}: ${text}`);
      }
    }
  }
  if (attached.length > 0) {
    announce(`Attached ${attached.join(", ")}`);
  }
}

/** Examines a file and stores its content. */
export async function keepFile({ library }: Pick<Parts, "library">, file: File, longest: number): Promise<Attachment> {
  const { examineFile } = await import("./examine-file");
  const { content, ...examined } = await examineFile(file, longest);
  const { id, lasting } = await library.attachments.add(content);
  if (!lasting && library.lasting) {
    notify(`The browser's storage is full. “${file.name}” is kept only while this page is open.`);
  }
  return { id, ...examined };
}
