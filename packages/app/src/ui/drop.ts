// Files that are dropped anywhere on the page are opened as a model. The page stays where it is.

import { useEffect, useState } from "preact/hooks";
import { keepFiles } from "../model/file-card";
import { useParts } from "./parts";

/** Whether files are being dragged over the page. */
export function useDroppedFiles(): boolean {
  const { host, support } = useParts();
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
      if (files.length > 0) {
        event.preventDefault();
        void host.load({ kind: "files", files, keep: keepFiles.peek() });
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
