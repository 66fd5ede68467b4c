// Starts the app: opens the storage, makes the long-lived objects, renders the page.

import "./style/tokens.css";
import "./style/base.css";
import "./style/shell.css";
import "./style/chat.css";
import "./style/attachments.css";
import "./style/markdown.css";
import "./style/pages.css";
import { render } from "preact";
import { ModelStore } from "rullama";
import { ChatController } from "./chat/controller";
import { Drafts } from "./chat/drafts";
import { Library } from "./chat/library";
import { openSettings } from "./chat/settings-dialog";
import { findSupport } from "./device/adapter";
import { ModelHost } from "./model/host";
import { reportErrors } from "./model/reports";
import { Server } from "./model/server";
import { registerOffline } from "./offline/register";
import { Preferences } from "./state/preferences";
import { Navigation } from "./ui/navigation";
import type { Parts } from "./ui/parts";
import { App } from "./ui/shell";

const preferences = new Preferences();
// None of these rejects: the app works without a feature that the browser forbids or lacks.
const [library, store, support] = await Promise.all([
  Library.open(),
  ModelStore.open().catch(() => undefined),
  findSupport(),
]);
const server = new Server();
const host = new ModelHost(store, preferences, support.auto.kind);
const chat = new ChatController(library, host, preferences, new Drafts());
const go = new Navigation(chat, library);
const parts: Parts = { preferences, library, host, chat, support, server, go };
go.settings = () => openSettings(parts);

const root = document.getElementById("app") as HTMLElement;
root.replaceChildren();
render(<App parts={parts} />, root);
// The page does not wait for the server: an installed app also opens without one.
void server.refresh();
reportErrors(parts);
registerOffline();
