// Checks a chosen model before anything is downloaded, stored or unloaded. Rejects with the error that loading it would give.

import { inspect, splitUrls, type ModelSource, type ModelStore } from "rullama";
import { fileName, type ModelChoice } from "./choice";
import { isThisDemo } from "./demo";
import type { LoadSettings } from "./host";
import { projectorSource } from "./projector";
import { checkFile, probe } from "./probe";

export interface CheckOptions {
  store: ModelStore | undefined;
  /** The settings that the model would be loaded with. */
  settings: LoadSettings;
  signal: AbortSignal;
}

/** The store can download from these servers, but the header can't be read alone. The store checks the file as it arrives. */
const UNREADABLE = ["source.range_ignored", "source.content_range"];

export async function checkModel(choice: ModelChoice, { store, settings, signal }: CheckOptions): Promise<void> {
  if (isThisDemo(choice)) {
    return;
  }
  const { projector } = choice;
  if (projector && "file" in projector) {
    await checkFile(projector.file);
  } else if (projector && "url" in projector) {
    await probe(absolute(projector.url).href, signal);
  }
  switch (choice.kind) {
    case "files":
      for (const file of choice.files) {
        await checkFile(file);
      }
      return readHeader(inOrder(choice.files), choice, choice.files[0]?.name, settings, signal);
    case "address": {
      const { href } = absolute(choice.url);
      // A file that is stored, completely or in part, was checked before its download began.
      if (choice.keep && !choice.replace && (await isStored(store, href))) {
        return;
      }
      await probe(href, signal);
      return readHeader(href, choice, choice.name ?? fileName(href), settings, signal).catch((error: unknown) => {
        if (!choice.keep || !UNREADABLE.includes(String((error as { code?: unknown }).code))) {
          throw error;
        }
      });
    }
    case "stored":
      return readHeader(choice.names.map((stored) => ({ stored })), choice, choice.names[0], settings, signal);
  }
}

/** The parts of a split model in order. */
export function inOrder(files: readonly File[]): File[] {
  return [...files].sort((a, b) => (a.name < b.name ? -1 : 1));
}

async function readHeader(
  source: ModelSource,
  { projector }: ModelChoice,
  file: string | undefined,
  { context, backend }: LoadSettings,
  signal: AbortSignal,
): Promise<void> {
  try {
    await inspect(source, { signal, backend, ...(context === null ? {} : { context }), ...(projector ? { projector: projectorSource(projector) } : {}) });
  } catch (thrown) {
    const error = thrown as Error & { details?: object };
    // The message names the file, also where the package was given one without a name.
    throw Object.assign(new Error(error.message), { code: (thrown as { code?: unknown }).code, details: { file, ...error.details } });
  }
}

async function isStored(store: ModelStore | undefined, href: string): Promise<boolean> {
  const stored = (await store?.list().catch(() => [])) ?? [];
  const first = splitUrls(href)[0] ?? href;
  return stored.some(({ url }) => url === first);
}

function absolute(url: string): URL | { href: string } {
  try {
    return new URL(url, location.href);
  } catch {
    return { href: url };
  }
}
