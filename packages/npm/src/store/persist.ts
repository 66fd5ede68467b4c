// Keeping what is stored.

/** Asks the browser not to evict the files. Only a window may ask; some ask the user, so nobody waits for it. */
export function askToPersist(): void {
  const storage = globalThis.navigator?.storage as Partial<StorageManager> | undefined;
  void storage?.persisted?.().then((already) => already || storage.persist?.()).catch(() => {});
}
