// The app: opens what is kept, makes the pages, and follows the address.

import "./style/tokens.css";
import "./style/base.css";
import "./style/shell.css";
import "./style/chat.css";
import "./style/markdown.css";
import "./style/pages.css";
import { ModelStore } from "rullama";
import { ChatController } from "./chat/controller";
import { Library } from "./chat/library";
import { findSupport } from "./device/adapter";
import { reportErrors } from "./model/reports";
import { ModelHost } from "./model/host";
import { Server } from "./model/server";
import { registerOffline } from "./offline/register";
import { Preferences } from "./state/preferences";
import { Shell } from "./ui/shell";

const preferences = new Preferences();
// None of these fails: where something is forbidden or missing, the app does without it.
const [library, store, support] = await Promise.all([
  Library.open(),
  ModelStore.open().catch(() => undefined),
  findSupport(),
]);
const server = new Server();
const host = new ModelHost(store, preferences);
const chat = new ChatController(library, host, preferences);
const shell = new Shell({ preferences, library, host, chat, support, server });
document.getElementById("app")?.replaceChildren(...shell.elements);
shell.start();
// Nothing on the page waits for the server: an installed app opens where there is none.
void server.refresh();
reportErrors({ server, preferences, host, chat });
registerOffline();
