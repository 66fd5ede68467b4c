// `localStorage` that never throws: some browsers and private windows forbid it.

export function load(key: string): string | null {
  try {
    return localStorage.getItem(key);
  } catch {
    return null;
  }
}

export function save(key: string, value: string): void {
  try {
    localStorage.setItem(key, value);
  } catch {
    // Forbidden or full. The page still has the value in memory.
  }
}

export function remove(key: string): void {
  try {
    localStorage.removeItem(key);
  } catch {
    // Forbidden, so nothing was stored.
  }
}

/** Parses stored JSON; null if it is missing or damaged. */
export function loadJson(key: string): unknown {
  return parseJson(load(key));
}

export function parseJson(text: string | null): unknown {
  try {
    return JSON.parse(text ?? "null");
  } catch {
    return null;
  }
}
