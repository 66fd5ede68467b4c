// Whether the page is visible.

/** Calls `changed` when the page is hidden or shown, and at once if it is hidden. Gives a function that stops this. Does nothing in a worker. */
export function watchHidden(changed: (hidden: boolean) => void): () => void {
  const page = globalThis.document as Document | undefined;
  if (!page) {
    return () => {};
  }
  const tell = () => changed(page.visibilityState === "hidden");
  page.addEventListener("visibilitychange", tell);
  if (page.visibilityState === "hidden") {
    tell();
  }
  return () => page.removeEventListener("visibilitychange", tell);
}
