// Loads a model from an address.

import { useState } from "preact/hooks";
import { useParts } from "../ui/parts";
import { fileAddress } from "./address";
import type { ModelChoice } from "./choice";

export function AddressCard({ use }: { use: (choice: ModelChoice) => void }) {
  const { host } = useParts();
  const storing = host.store !== undefined;
  const [address, setAddress] = useState("");
  const [projector, setProjector] = useState("");
  const [keep, setKeep] = useState(storing);
  const submit = (event: Event) => {
    event.preventDefault();
    const url = fileAddress(address);
    if (url !== "") {
      const beside = fileAddress(projector);
      use({ kind: "address", url, keep, ...(beside === "" ? {} : { projector: { url: beside } }) });
    }
  };
  return (
    <form class="card" onSubmit={submit}>
      <h2>From an address</h2>
      <div class="row">
        <input
          type="url"
          class="input"
          required
          placeholder="https://…/model.gguf"
          aria-label="Address of a GGUF file"
          value={address}
          onInput={({ currentTarget }) => setAddress(currentTarget.value)}
        />
        <button type="submit" class="button primary">
          Load
        </button>
      </div>
      <details class="technical">
        <summary>Projector for images and sounds</summary>
        <p class="muted small">Only if the model has one, as a file of its own: mmproj-….gguf.</p>
        <input
          type="url"
          class="input"
          placeholder="https://…/mmproj-model.gguf"
          aria-label="Address of the projector"
          value={projector}
          onInput={({ currentTarget }) => setProjector(currentTarget.value)}
        />
      </details>
      <label class="check">
        <input type="checkbox" checked={keep} disabled={!storing} onChange={({ currentTarget }) => setKeep(currentTarget.checked)} />
        <span>Keep it in this browser, so that it loads quickly and works offline</span>
      </label>
    </form>
  );
}
