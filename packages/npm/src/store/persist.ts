// Asks the browser to keep stored files.

/** Asks the browser not to evict the files. Only a window can ask. The answer is not awaited, because some browsers ask the user. */
export function askToPersist(): void {
  const storage = globalThis.navigator?.storage as Partial<StorageManager> | undefined;
  void storage?.persisted?.().then((already) => already || storage.persist?.()).catch(() => {});
}
