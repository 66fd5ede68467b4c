// The sidebar: new chat, search, the list of chats, links to the other pages, import and export, theme.

import { useState } from "preact/hooks";
import { Button, IconButton } from "../ui/button";
import { pickFiles } from "../ui/files";
import { Icon, type IconName } from "../ui/icons";
import { focusComposer } from "../ui/navigation";
import { notify, notifyError } from "../ui/notices";
import { useParts } from "../ui/parts";
import { ConversationList } from "./conversation-list";
import { exportJson } from "./export";
import type { Library } from "./library";
import { ThemeButton } from "./theme-button";

export function Sidebar() {
  const { library, go } = useParts();
  const [query, setQuery] = useState("");
  const newChat = () => {
    go.newChat();
    focusComposer();
  };
  return (
    <nav class="sidebar" aria-label="Chats and pages" id="sidebar">
      <div class="sidebar-top">
        <a class="brand" href="#/">
          <img src="icons/icon.svg" alt="" width={24} height={24} />
          <span>rullama</span>
        </a>
        <Button icon="add" class="wide" title="New chat (Ctrl+K, then Enter)" onClick={newChat}>
          New chat
        </Button>
        <input type="search" class="input" placeholder="Search" aria-label="Search chats" value={query} onInput={({ currentTarget }) => setQuery(currentTarget.value)} />
      </div>
      <ConversationList query={query} />
      <div class="sidebar-bottom">
        <PageLink label="Models" href="#/models" icon="cube" />
        <PageLink label="Device" href="#/device" icon="chip" />
        <div class="row between">
          <div class="row tight">
            <IconButton label="Import chats" icon="import" onClick={() => void chooseAndImport(library)} />
            <IconButton label="Export all chats" icon="export" onClick={() => void exportJson(library.all(), library.attachments)} />
          </div>
          <ThemeButton />
        </div>
      </div>
    </nav>
  );
}

function PageLink({ label, href, icon }: { label: string; href: string; icon: IconName }) {
  const { go } = useParts();
  return (
    <a class="page-link" href={href} aria-current={go.hash === href ? "page" : undefined}>
      <Icon name={icon} />
      <span>{label}</span>
    </a>
  );
}

async function chooseAndImport(library: Library): Promise<void> {
  const [file] = await pickFiles(".json,application/json", false);
  if (!file) {
    return;
  }
  try {
    const { importChats } = await import("./import");
    const count = await importChats(library, file);
    notify(count === 1 ? "Imported one chat." : `Imported ${count} chats.`);
  } catch (error) {
    notifyError(error);
  }
}
