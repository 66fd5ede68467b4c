// Starts the service worker, and tells when a new version waits.

import { notify } from "../ui/notices";

export function registerOffline(): void {
  if (!import.meta.env.PROD || !("serviceWorker" in navigator)) {
    return;
  }
  void register().catch(() => {
    // Forbidden here, as in some private windows: the app works, but only with a network.
  });
}

async function register(): Promise<void> {
  const registration = await navigator.serviceWorker.register("service-worker.js", { scope: "./" });
  const offer = (worker: ServiceWorker) => {
    notify("A new version is ready.", {
      label: "Reload",
      run: () => {
        navigator.serviceWorker.addEventListener("controllerchange", () => location.reload(), { once: true });
        worker.postMessage("take over");
      },
    });
  };
  if (registration.waiting && navigator.serviceWorker.controller) {
    offer(registration.waiting);
  }
  registration.addEventListener("updatefound", () => {
    const worker = registration.installing;
    worker?.addEventListener("statechange", () => {
      // Without a controller this is the first version, which nobody waits for.
      if (worker.state === "installed" && navigator.serviceWorker.controller) {
        offer(worker);
      }
    });
  });
}
