// The demo model on the Models page.

import { bytes } from "../text/format";
import { Button } from "../ui/button";
import { useParts } from "../ui/parts";
import type { ModelChoice } from "./choice";
import { DEMO_LIMITS, DEMO_TITLE, isThisDemo } from "./demo";
import type { StoredGroup } from "./parts";
import { Housekeeping } from "./stored-row";

/** `group` is the stored demo model, if it is stored. */
export function DemoRow({ group, use }: { group: StoredGroup | undefined; use: (choice: ModelChoice) => void }) {
  const { host } = useParts();
  const inUse = host.state.kind === "ready" && isThisDemo(host.state.choice);
  const state = inUse
    ? "In use."
    : group?.complete
      ? "Stored in this browser."
      : group && `${bytes(group.storedBytes)} of ${bytes(group.bytes)} stored.`;
  return (
    <li class="row between">
      <div class="grow">
        <strong>{DEMO_TITLE}</strong>
        <div class="muted small">{[DEMO_LIMITS, state].filter(Boolean).join(" ")}</div>
      </div>
      <div class="row tight">
        {group && <Housekeeping group={group} />}
        {!inUse && (
          <Button kind="primary" title="Use Demo model" onClick={() => use(host.demo)}>
            Use
          </Button>
        )}
      </div>
    </li>
  );
}
