// One stored model in the list: use or resume it, check it, save it elsewhere, delete it.

import { bytes } from "../text/format";
import { button, iconButton } from "../ui/button";
import { confirm } from "../ui/dialog";
import { make, saveFile, type Child } from "../ui/dom";
import { notify, notifyError } from "../ui/notices";
import type { ModelChoice, ModelHost } from "./host";
import { shortName, type StoredGroup } from "./parts";

export interface StoredRowOptions {
  host: ModelHost;
  use: (choice: ModelChoice) => void;
  /** Called when the list has to be looked at again. */
  changed: () => void;
}

export function storedRow(group: StoredGroup, options: StoredRowOptions): HTMLElement {
  const { host, use } = options;
  const name = shortName(group.label);
  const names = group.files.map((file) => file.name);
  const { state } = host;
  const current = state.kind === "ready" && state.choice.kind === "stored" && state.choice.names[0] === names[0];
  const [first] = group.files;
  const resumable = !group.complete && first?.url !== undefined;
  const facts = group.complete
    ? bytes(group.bytes)
    : `${bytes(group.storedBytes)}${group.bytes > 0 ? ` of ${bytes(group.bytes)}` : ""}, not complete`;
  const resume = () =>
    use({ kind: "address", url: first?.url as string, keep: true, ...(group.files.length === 1 ? { name: first?.name as string } : {}) });
  return make(
    "li",
    { class: "row between" },
    make("div", { class: "grow" }, make("strong", {}, name), make("div", { class: "muted small" }, current ? `${facts} · in use` : facts)),
    make(
      "div",
      { class: "row tight" },
      ...housekeeping(group, options),
      group.complete && !current && button("Use", () => use({ kind: "stored", names }), { kind: "primary", title: `Use ${name}` }),
      resumable && button("Resume", resume, { kind: "primary", title: `Resume ${name}` }),
    ),
  );
}

/** Buttons for what can be done with stored files beside using them. */
export function housekeeping(group: StoredGroup, options: StoredRowOptions): Child[] {
  const name = shortName(group.label);
  const names = group.files.map((file) => file.name);
  return [
    group.complete && iconButton(`Check ${name} for damage`, "shield", () => void check(names, options)),
    group.complete && iconButton(`Save ${name} as a file`, "export", () => void save(names, options)),
    iconButton(`Delete ${name}`, "trash", () => void remove(name, names, group.storedBytes, options)),
  ];
}

async function check(names: string[], { host, changed }: StoredRowOptions): Promise<void> {
  try {
    notify("Checking every byte. This takes a while.");
    for (const name of names) {
      const { repaired } = (await host.store?.verify(name, { repair: true })) ?? { repaired: [] };
      notify(repaired.length === 0 ? `${name} is as it was stored.` : `${name} was damaged and has been repaired.`);
    }
  } catch (error) {
    notifyError(error);
  }
  changed();
}

async function save(names: string[], { host }: StoredRowOptions): Promise<void> {
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

async function remove(name: string, names: string[], size: number, { host, changed }: StoredRowOptions): Promise<void> {
  const agreed = await confirm(`Delete ${name}?`, `This frees ${bytes(size)}. To use it again it has to be downloaded again.`, "Delete");
  if (!agreed) {
    return;
  }
  try {
    await host.delete(names);
  } catch (error) {
    notifyError(error);
  }
  changed();
}
