// The list of chats, by age; or those that match a search.

import { age } from "../text/format";
import { Button } from "../ui/button";
import { ask, confirm } from "../ui/dialog";
import { Icon } from "../ui/icons";
import { useParts, type Parts } from "../ui/parts";
import { exportJson, exportMarkdown } from "./export";
import { search, type Found } from "./search";
import type { Conversation } from "./tree";

/** The most chats that are listed. Search finds the others. */
const MOST = 200;

export function ConversationList({ query }: { query: string }) {
  const { library, chat } = useParts();
  const found = search(library.all(), query);
  const searching = query.trim() !== "";
  const now = Date.now();
  const groups = new Map<string, Found[]>();
  for (const one of found.slice(0, MOST)) {
    const heading = searching ? "Found" : age(one.conversation.updatedAt, now);
    groups.set(heading, [...(groups.get(heading) ?? []), one]);
  }
  const current = chat.conversation.id;
  return (
    <div class="conversations">
      {[...groups].map(([heading, members]) => (
        <section key={heading}>
          <h2 class="group-heading">{heading}</h2>
          <ul>
            {members.map(({ conversation, excerpt }) => (
              <ConversationRow key={conversation.id} conversation={conversation} title={conversation.title} excerpt={excerpt} current={conversation.id === current} />
            ))}
          </ul>
        </section>
      ))}
      {found.length === 0 && <p class="muted small empty">{searching ? "No chats found." : "Your chats will appear here."}</p>}
      {found.length > MOST && <p class="muted small empty">{`${found.length - MOST} more. Search to find them.`}</p>}
      {!library.lasting && <p class="muted small empty">This browser doesn't save chats here. Export the ones you want to keep.</p>}
    </div>
  );
}

interface RowProps {
  conversation: Conversation;
  title: string;
  excerpt: string;
  current: boolean;
}

function ConversationRow({ conversation, title, excerpt, current }: RowProps) {
  const parts = useParts();
  const isPage = current && parts.go.page === "chat";
  return (
    <li class="conversation">
      <a href={`#/chat/${conversation.id}`} aria-current={isPage ? "page" : undefined} title={title}>
        <span class="conversation-title">{title}</span>
        {excerpt !== "" && <span class="excerpt">{excerpt}</span>}
      </a>
      <details class="menu">
        <summary aria-label={`Actions for ${title}`} title="Actions">
          <Icon name="more" />
        </summary>
        <div class="menu-items">
          <Button kind="quiet" icon="edit" onClick={() => void rename(conversation, parts)}>
            Rename
          </Button>
          <Button kind="quiet" icon="export" onClick={() => exportMarkdown(conversation)}>
            Export as Markdown
          </Button>
          <Button kind="quiet" icon="export" onClick={() => void exportJson([conversation], parts.library.attachments)}>
            Export as JSON
          </Button>
          <Button kind="quiet" icon="trash" onClick={() => void remove(conversation, parts)}>
            Delete
          </Button>
        </div>
      </details>
    </li>
  );
}

async function rename(conversation: Conversation, { chat }: Parts): Promise<void> {
  const title = await ask("Rename chat", "Title", conversation.title, "Rename");
  if (title !== undefined) {
    await chat.rename(conversation, title);
  }
  closeMenus();
}

async function remove(conversation: Conversation, { chat, go }: Parts): Promise<void> {
  if (await confirm("Delete this chat?", `“${conversation.title}” will be deleted for good.`, "Delete")) {
    const shown = chat.conversation.id === conversation.id;
    await chat.delete(conversation.id);
    if (shown) {
      go.newChat();
    }
  }
  closeMenus();
}

function closeMenus(): void {
  document.querySelectorAll<HTMLDetailsElement>(".conversation details[open]").forEach((menu) => {
    menu.open = false;
  });
}
