// Starts the service worker, and tells when a new version waits, or has taken over in another tab.

import { notify } from "../ui/notices";

export function registerOffline(): void {
  if (!import.meta.env.PROD || !("serviceWorker" in navigator)) {
    return;
  }
  void register(navigator.serviceWorker).catch(() => {
    // Forbidden here, as in some private windows: the app works, but only with a network.
  });
}

async function register(container: ServiceWorkerContainer): Promise<void> {
  let notice: HTMLElement | undefined;
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
      // Somebody said yes in another tab. This one has the files of its own version for as long as it stays.
      offer("A new version is in use in another tab.", () => location.reload());
    }
    // The first version of all takes over from nobody.
    controlled = true;
  });

  const registration = await container.register("service-worker.js", { scope: "./" });
  if (registration.waiting && container.controller) {
    offerTakeOver(registration.waiting);
  }
  registration.addEventListener("updatefound", () => {
    const worker = registration.installing;
    worker?.addEventListener("statechange", () => {
      // Without a controller this is the first version, which nobody waits for.
      if (worker.state === "installed" && container.controller) {
        offerTakeOver(worker);
      }
    });
  });
}
