// The frame around every page: sidebar, header, the page itself, messages; keys and dropped files.

import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { ChatView } from "../chat/chat-view";
import { Sidebar } from "../chat/sidebar";
import { openSwitcher } from "../chat/switcher";
import { ModelsView } from "../model/models-view";
import { classes } from "./button";
import { useDroppedFiles } from "./drop";
import { Header } from "./header";
import { lazy } from "./lazy";
import { isTouch } from "./navigation";
import { Notices } from "./notices";
import { PartsContext, useParts, type Parts } from "./parts";
import { useFailureNotice, useMovedNotice, useUnsavedNotice } from "./standing-notices";

const DeviceView = lazy(async () => (await import("../device/device-view")).DeviceView);

export function App({ parts }: { parts: Parts }) {
  return (
    <PartsContext.Provider value={parts}>
      <Shell />
    </PartsContext.Provider>
  );
}

function Shell() {
  const { preferences } = useParts();
  const [drawer, setDrawer] = useState(false);
  const menu = useRef<HTMLButtonElement>(null);
  const main = useRef<HTMLElement>(null);
  const dropping = useDroppedFiles();
  useUnsavedNotice();
  useFailureNotice();
  useMovedNotice();
  const openDrawer = () => {
    setDrawer(true);
    // The sidebar is focusable only after it has been rendered open.
    setTimeout(() => document.querySelector<HTMLElement>("#sidebar button, #sidebar a")?.focus());
  };
  const closeDrawer = (focus: boolean) => {
    setDrawer(false);
    if (focus) {
      menu.current?.focus();
    }
  };
  useKeys(drawer, () => closeDrawer(true));
  useNewPage(main, () => closeDrawer(false));
  // As in shell.css.
  const isNarrow = () => matchMedia("(max-width: 760px), (max-height: 480px)").matches;
  const toggle = () => (isNarrow() ? openDrawer() : preferences.setSidebarHidden(!preferences.sidebarHidden));
  return (
    <>
      <a
        class="skip"
        href="#main"
        onClick={(event) => {
          event.preventDefault();
          main.current?.focus();
        }}
      >
        Skip to content
      </a>
      <div class={classes("frame", drawer && "drawer-open", dropping && "dropping", preferences.sidebarHidden && "sidebar-hidden")}>
        <Sidebar />
        <div class="shade" onClick={() => closeDrawer(true)} />
        <div class="column">
          <Header menu={menu} toggle={toggle} drawer={drawer} />
          <MainPage main={main} />
        </div>
      </div>
      <Notices />
    </>
  );
}

function MainPage({ main }: { main: { current: HTMLElement | null } }) {
  const { page } = useParts().go;
  const content = page === "device" ? <DeviceView /> : page === "models" ? <ModelsView /> : <ChatView />;
  return (
    <main ref={main} id="main" tabIndex={-1} class={page === "chat" ? "chatting" : ""}>
      {content}
    </main>
  );
}

/** On another page: its title, the focus at its beginning, and the drawer closed. */
function useNewPage(main: { current: HTMLElement | null }, opened: () => void): void {
  const { go } = useParts();
  const first = useRef(true);
  const { page, hash } = go;
  useLayoutEffect(() => {
    opened();
    document.title = page === "models" ? "Models – rullama" : page === "device" ? "Device – rullama" : "rullama";
    const composer = document.querySelector<HTMLElement>(".composer-input");
    if (page === "chat" && composer) {
      if (!isTouch() && !document.querySelector("dialog[open]")) {
        composer.focus();
      }
    } else if (!first.current) {
      main.current?.scrollTo({ top: 0 });
      main.current?.focus();
    }
    first.current = false;
  }, [page, hash]);
}

function useKeys(drawer: boolean, closeDrawer: () => void): void {
  const { library, chat, go } = useParts();
  useEffect(() => {
    const closeMenus = (except?: Node) => {
      const open = [...document.querySelectorAll<HTMLDetailsElement>("details.menu[open]")].filter((menu) => !except || !menu.contains(except));
      open.forEach((menu) => {
        menu.open = false;
      });
      return open.length > 0;
    };
    const key = (event: KeyboardEvent) => {
      if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k" && !event.altKey && !event.shiftKey) {
        event.preventDefault();
        openSwitcher(library, go);
      } else if (event.key === "Escape" && !event.isComposing && !document.querySelector("dialog[open]")) {
        if (drawer) {
          closeDrawer();
        } else if (!closeMenus()) {
          void chat.stop();
        }
      }
    };
    const press = ({ target }: PointerEvent) => void closeMenus(target as Node);
    addEventListener("keydown", key);
    addEventListener("pointerdown", press);
    return () => {
      removeEventListener("keydown", key);
      removeEventListener("pointerdown", press);
    };
  }, [drawer]);
}
