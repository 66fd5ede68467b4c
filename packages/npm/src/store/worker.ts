// The worker a window's store starts for itself: it answers requests, over OPFS, until it is ended.

import { openLocalStore } from "./open.js";
import { serveStore } from "./protocol.js";
import type { StorePort } from "./protocol.js";

serveStore(globalThis as unknown as StorePort, openLocalStore);
