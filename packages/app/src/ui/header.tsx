// The header: the sidebar's button, the chat's title, the model, settings.

import type { RefObject } from "preact";
import { Button, IconButton } from "./button";
import { useParts } from "./parts";
import { focusComposer } from "./navigation";

export function Header({ menu, toggle, drawer }: { menu: RefObject<HTMLButtonElement | null>; toggle: () => void; drawer: boolean }) {
  const { chat, go, preferences } = useParts();
  const { title, messages } = chat.conversation;
  const newChat = () => {
    go.newChat();
    focusComposer();
  };
  return (
    <header class="header">
      <IconButton buttonRef={menu} label="Chats" icon="sidebar" class="menu-button" controls="sidebar" expanded={drawer || !preferences.sidebarHidden} onClick={toggle} />
      <span class="header-title">{go.page === "chat" && messages.length > 0 ? title : ""}</span>
      <ModelChip />
      <IconButton label="Settings" icon="sliders" onClick={() => go.settings()} />
      <IconButton label="New chat" icon="add" class="narrow-only" onClick={newChat} />
    </header>
  );
}

function ModelChip() {
  const { host, go } = useParts();
  const { state } = host;
  return (
    <span class="header-model" data-state={state.kind}>
      <Button kind="quiet" class="model-chip" title="Models" onClick={() => go.models()}>
        <ModelLabel />
      </Button>
    </span>
  );
}

function ModelLabel() {
  const { host } = useParts();
  const { state, progress, checking } = host;
  switch (state.kind) {
    case "ready":
      return <>{state.label}</>;
    case "busy":
      return <>{progress.stages.length > 0 ? `Loading ${Math.floor(progress.share * 100)} %` : "Loading"}</>;
    case "failed":
      return <>Model failed</>;
    case "empty":
      return <>{checking ? "Checking…" : "No model"}</>;
  }
}
