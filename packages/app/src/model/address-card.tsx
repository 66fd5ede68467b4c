// Loads a model from an address.

import { useState } from "preact/hooks";
import { useParts } from "../ui/parts";
import { fileAddress } from "./address";
import type { ModelChoice } from "./choice";

export function AddressCard({ use }: { use: (choice: ModelChoice) => void }) {
  const { host } = useParts();
  const storing = host.store !== undefined;
  const [address, setAddress] = useState("");
  const [keep, setKeep] = useState(storing);
  const submit = (event: Event) => {
    event.preventDefault();
    const url = fileAddress(address);
    if (url !== "") {
      use({ kind: "address", url, keep });
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
      <label class="check">
        <input type="checkbox" checked={keep} disabled={!storing} onChange={({ currentTarget }) => setKeep(currentTarget.checked)} />
        <span>Keep it in this browser, so that it loads quickly and works offline</span>
      </label>
    </form>
  );
}
