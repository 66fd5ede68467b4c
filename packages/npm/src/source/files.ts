// All files of a model: those of the model itself, and its projector.

import type { InspectParams, SentSource } from "../protocol.js";
import type { StoreOptions } from "../types.js";
import type { ByteSource } from "./types.js";

export interface ModelFiles {
  sources: ByteSource[];
  projector?: ByteSource;
}

/** How a file of a model is stored, if at all: name and digest are those of the model's own file. */
export type OpenFile = (file: SentSource, store: StoreOptions | undefined) => Promise<ByteSource>;

/** Opens the files of a model one after the other. If one can't be opened, closes the others. */
export async function openFiles({ sources, projector }: InspectParams, store: StoreOptions | undefined, open: OpenFile): Promise<ModelFiles> {
  const files: ModelFiles = { sources: [] };
  try {
    for (const file of sources) {
      files.sources.push(await open(file, store));
    }
    if (projector) {
      files.projector = await open(projector, ofProjector(store));
    }
    return files;
  } catch (thrown) {
    closeFiles(files);
    throw thrown;
  }
}

export function closeFiles({ sources, projector }: ModelFiles): void {
  sources.forEach((source) => source.close?.());
  projector?.close?.();
}

/** The URLs of a model's files, with how each is stored. */
export function urlsOf({ sources, projector }: InspectParams, store: StoreOptions): [url: string, store: StoreOptions][] {
  const files: [SentSource | undefined, StoreOptions][] = [...sources.map((file): [SentSource, StoreOptions] => [file, store]), [projector, ofProjector(store) ?? {}]];
  return files.flatMap(([file, store]) => (file?.kind === "url" ? [[file.url, store]] : []));
}

function ofProjector(store: StoreOptions | undefined): StoreOptions | undefined {
  const { replace } = store ?? {};
  return store && (replace === undefined ? {} : { replace });
}
