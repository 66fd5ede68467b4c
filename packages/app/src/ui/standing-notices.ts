// Messages about states: a chat that can't be saved, and a model that could not be loaded.

import { useSignalEffect } from "@preact/signals";
import { useRef } from "preact/hooks";
import { exportJson } from "../chat/export";
import type { Failure } from "../model/host";
import { notify, notifyError, type Notice } from "./notices";
import { useParts } from "./parts";

/** Says that a chat is not saved, as long as that is so. */
export function useUnsavedNotice(): void {
  const { chat, library } = useParts();
  const notice = useRef<Notice | undefined>(undefined);
  useSignalEffect(() => {
    const { unsaved } = chat;
    notice.current?.remove();
    notice.current = undefined;
    if (unsaved) {
      const full = (unsaved.reason as { name?: unknown } | undefined)?.name === "QuotaExceededError";
      const why = full ? "the browser's storage is full" : "the browser refused";
      notice.current = notify(`Not saved: ${why}. Export this chat before you close the page.`, {
        label: "Export",
        run: () => void exportJson([chat.conversation], library.attachments),
      });
    }
  });
}

/** Shows why a model could not be loaded. The Models page shows that itself. */
export function useFailureNotice(): void {
  const { host, go } = useParts();
  const seen = useRef<Failure | undefined>(undefined);
  useSignalEffect(() => {
    const { failure } = host;
    if (failure && go.page === "models") {
      seen.current = failure;
    } else if (failure) {
      if (failure !== seen.current) {
        notifyError(failure.error);
      }
      host.dismissFailure();
    }
  });
}

/** Says that the CPU took over from a GPU that failed. It stays until it is dismissed: from now on everything is slower. */
export function useMovedNotice(): void {
  const { host, go } = useParts();
  useSignalEffect(() => {
    const { moved } = host;
    if (moved) {
      notify(`The CPU computes from now on, more slowly. ${moved.reason}`, { label: "Device", run: () => go.device() });
    }
  });
}
