// The address of an attachment's content, as long as a component shows it.

import { useEffect, useState } from "preact/hooks";
import { useParts } from "../ui/parts";

export type ContentUrl = { kind: "loading" } | { kind: "ready"; url: string } | { kind: "missing" };

export function useContentUrl(id: string): ContentUrl {
  const { library } = useParts();
  const [state, setState] = useState<ContentUrl>({ kind: "loading" });
  useEffect(() => {
    let url: string | undefined;
    let gone = false;
    void library.attachments.get(id).then((content) => {
      if (!gone) {
        url = content && URL.createObjectURL(content);
        setState(url ? { kind: "ready", url } : { kind: "missing" });
      }
    });
    return () => {
      gone = true;
      if (url) {
        URL.revokeObjectURL(url);
      }
    };
  }, [id]);
  return state;
}
