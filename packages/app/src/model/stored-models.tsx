// The models that are stored in this browser, and the space they take.

import { useEffect, useState } from "preact/hooks";
import type { StoreSpace } from "rullama";
import { bytes } from "../text/format";
import { Facts } from "../ui/facts";
import { notifyError } from "../ui/notices";
import { useParts } from "../ui/parts";
import { groupStored, type StoredGroup } from "./parts";

export interface Stored {
  groups: StoredGroup[];
  space: StoreSpace;
}

/** The stored models; undefined until they have been read. */
export function useStored(): Stored | undefined {
  const { host } = useParts();
  const { store, storeVersion } = host;
  const [stored, setStored] = useState<Stored | undefined>(store ? undefined : { groups: [], space: {} as StoreSpace });
  useEffect(() => {
    if (!store) {
      return;
    }
    let outdated = false;
    Promise.all([store.list(), store.estimate()]).then(
      ([files, space]) => !outdated && setStored({ groups: groupStored(files), space }),
      (error: unknown) => !outdated && notifyError(error),
    );
    return () => {
      outdated = true;
    };
  }, [store, storeVersion]);
  return stored;
}

export function StoreSpaceFacts({ space: { usage, free, persisted } }: { space: StoreSpace }) {
  const known = [usage === undefined ? undefined : `${bytes(usage)} used`, free === undefined ? undefined : `${bytes(free)} free`];
  return (
    <span class="muted small">
      <Facts words={known} />
      {!persisted && " · the browser may delete it when the disk is full"}
    </span>
  );
}
