// A stored model: use or resume it, check it, save it to the disk, delete it.

import { bytes } from "../text/format";
import { Button, IconButton } from "../ui/button";
import { confirm } from "../ui/dialog";
import { saveFile } from "../ui/files";
import { notify, notifyError } from "../ui/notices";
import { useParts } from "../ui/parts";
import type { ModelChoice } from "./choice";
import type { ModelHost } from "./host";
import { shortName, type StoredGroup } from "./parts";
import { isProjector } from "./projector";
import { storedChoice } from "./remembered";

export function StoredRow({ group, use }: { group: StoredGroup; use: (choice: ModelChoice) => void }) {
  const { host, preferences } = useParts();
  const { state } = host;
  const name = shortName(group.label);
  const projector = isProjector(group.label);
  const names = group.files.map((file) => file.name);
  const current = state.kind === "ready" && state.choice.kind === "stored" && state.choice.names[0] === names[0];
  const [first] = group.files;
  const facts = group.complete ? bytes(group.bytes) : `${bytes(group.storedBytes)}${group.bytes > 0 ? ` of ${bytes(group.bytes)}` : ""}, incomplete`;
  const resume = () =>
    use({ kind: "address", url: first?.url as string, keep: true, ...(group.files.length === 1 ? { name: first?.name as string } : {}) });
  return (
    <li class="row between">
      <div class="grow">
        <strong>{name}</strong>
        <div class="muted small">{current ? `${facts} · in use` : projector ? `${facts} · a projector, for images and sounds` : facts}</div>
      </div>
      <div class="row tight">
        <Housekeeping group={group} />
        {group.complete && !current && !projector && (
          <Button kind="primary" title={`Use ${name}`} onClick={() => use(storedChoice(names, preferences))}>
            Use
          </Button>
        )}
        {!group.complete && first?.url !== undefined && !projector && (
          <Button kind="primary" title={`Resume ${name}`} onClick={resume}>
            Resume
          </Button>
        )}
      </div>
    </li>
  );
}

/** The buttons that check, save and delete stored files. */
export function Housekeeping({ group }: { group: StoredGroup }) {
  const { host } = useParts();
  const name = shortName(group.label);
  const names = group.files.map((file) => file.name);
  return (
    <>
      {group.complete && <IconButton label={`Check ${name} for damage`} icon="shield" onClick={() => void check(names, host)} />}
      {group.complete && <IconButton label={`Save ${name} as a file`} icon="export" onClick={() => void save(names, host)} />}
      <IconButton label={`Delete ${name}`} icon="trash" onClick={() => void remove(name, names, group.storedBytes, host)} />
    </>
  );
}

async function check(names: string[], host: ModelHost): Promise<void> {
  try {
    notify("Checking every byte. This takes a while.");
    for (const name of names) {
      const { repaired } = (await host.store?.verify(name, { repair: true })) ?? { repaired: [] };
      notify(repaired.length === 0 ? `${name} is not damaged.` : `${name} was damaged and has been repaired.`);
    }
  } catch (error) {
    notifyError(error);
  }
}

async function save(names: string[], host: ModelHost): Promise<void> {
  try {
    for (const name of names) {
      const file = await host.store?.export(name);
      if (file) {
        saveFile(file.name.endsWith(".gguf") ? file.name : `${file.name.replace(/[^\w.-]+/g, "-")}.gguf`, file);
      }
    }
  } catch (error) {
    notifyError(error);
  }
}

async function remove(name: string, names: string[], size: number, host: ModelHost): Promise<void> {
  if (!(await confirm(`Delete ${name}?`, `This frees ${bytes(size)}. To use the model again, you have to download it again.`, "Delete"))) {
    return;
  }
  try {
    await host.delete(names);
  } catch (error) {
    notifyError(error);
  }
}
