// Files that are dropped anywhere on the page: images and sounds are attached to the message, another file is opened as a model.
// The page stays where it is.

import { useEffect, useState } from "preact/hooks";
import { attachFiles, isMedia } from "../attach/attach";
import { keepFiles } from "../model/file-card";
import { chooseFiles } from "../model/projector";
import { useParts } from "./parts";

/** Whether files are being dragged over the page. */
export function useDroppedFiles(): boolean {
  const parts = useParts();
  const { host, support, go } = parts;
  const [dropping, setDropping] = useState(false);
  useEffect(() => {
    if (support.kind === "no") {
      return;
    }
    const over = (event: DragEvent) => {
      if (event.dataTransfer?.types.includes("Files")) {
        event.preventDefault();
        setDropping(true);
      }
    };
    const leave = (event: DragEvent) => event.relatedTarget === null && setDropping(false);
    const drop = (event: DragEvent) => {
      const files = [...(event.dataTransfer?.files ?? [])];
      setDropping(false);
      const media = files.filter(isMedia);
      if (files.length > 0) {
        event.preventDefault();
      }
      if (media.length > 0) {
        if (go.page !== "chat") {
          go.chat();
        }
        void attachFiles(parts, media);
      } else if (files.length > 0) {
        const choice = chooseFiles(files, keepFiles.peek(), host);
        if (choice) {
          void host.load(choice);
        }
      }
    };
    addEventListener("dragover", over);
    addEventListener("dragleave", leave);
    addEventListener("drop", drop);
    return () => {
      removeEventListener("dragover", over);
      removeEventListener("dragleave", leave);
      removeEventListener("drop", drop);
    };
  }, []);
  return dropping;
}
