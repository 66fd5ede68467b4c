// Loads a model from a file on the disk.

import { signal } from "@preact/signals";
import { Button } from "../ui/button";
import { pickFiles } from "../ui/files";
import { useParts } from "../ui/parts";
import type { ModelChoice } from "./choice";
import { chooseFiles } from "./projector";

/** Whether files are copied into the browser's storage; also for files that are dropped on the page. */
export const keepFiles = signal(false);

export function FileCard({ use }: { use: (choice: ModelChoice) => void }) {
  const { host } = useParts();
  const pick = async () => {
    const files = await pickFiles(".gguf", true);
    const choice = files.length > 0 ? chooseFiles(files, keepFiles.peek(), host) : undefined;
    if (choice) {
      use(choice);
    }
  };
  return (
    <div class="card drop">
      <h2>From a file</h2>
      <div class="row">
        <Button onClick={() => void pick()}>Choose a file</Button>
        <span class="muted small">or drop it anywhere on this page</span>
      </div>
      <p class="muted small">If a model's images and sounds need a projector (mmproj-….gguf), choose both files together.</p>
      <label class="check">
        <input
          type="checkbox"
          checked={keepFiles.value}
          disabled={host.store === undefined}
          onChange={({ currentTarget }) => {
            keepFiles.value = currentTarget.checked;
          }}
        />
        <span>Keep a copy in this browser</span>
      </label>
    </div>
  );
}
