// The app's long-lived objects, and ways to the other pages, for every component.

import { createContext } from "preact";
import { useContext } from "preact/hooks";
import type { ChatController } from "../chat/controller";
import type { Library } from "../chat/library";
import type { Support } from "../device/adapter";
import type { ModelHost } from "../model/host";
import type { Server } from "../model/server";
import type { Preferences } from "../state/preferences";
import type { Navigation } from "./navigation";

export interface Parts {
  preferences: Preferences;
  library: Library;
  host: ModelHost;
  chat: ChatController;
  support: Support;
  server: Server;
  go: Navigation;
}

export const PartsContext = createContext<Parts | undefined>(undefined);

export function useParts(): Parts {
  const parts = useContext(PartsContext);
  if (!parts) {
    throw new Error("this component needs a PartsContext");
  }
  return parts;
}
