// Registers the service worker, and says when a new version is ready or has taken over in another tab.

import { notify, type Notice } from "../ui/notices";

export function registerOffline(): void {
  if (!import.meta.env.PROD || !("serviceWorker" in navigator)) {
    return;
  }
  void register(navigator.serviceWorker).catch(() => {
    // Forbidden, as in some private windows. The app works, but only with a network.
  });
}

async function register(container: ServiceWorkerContainer): Promise<void> {
  let notice: Notice | undefined;
  let reloads = false;
  const offer = (text: string, run: () => void) => {
    notice?.remove();
    notice = notify(text, { label: "Reload", run });
  };
  const offerTakeOver = (worker: ServiceWorker) =>
    offer("A new version is ready.", () => {
      reloads = true;
      worker.postMessage("take over");
    });

  let controlled = container.controller !== null;
  container.addEventListener("controllerchange", () => {
    if (reloads) {
      location.reload();
    } else if (controlled) {
      // The user agreed in another tab. This one keeps the files of its own version until it is reloaded.
      offer("A new version is in use in another tab.", () => location.reload());
    }
    // The first version replaces no other.
    controlled = true;
  });

  const registration = await container.register("service-worker.js", { scope: "./" });
  if (registration.waiting && container.controller) {
    offerTakeOver(registration.waiting);
  }
  registration.addEventListener("updatefound", () => {
    const worker = registration.installing;
    worker?.addEventListener("statechange", () => {
      // Without a controller this is the first version; there is nothing to replace.
      if (worker.state === "installed" && container.controller) {
        offerTakeOver(worker);
      }
    });
  });
}
