// A field for a number setting. Valid values apply while they are typed; others are corrected when the user leaves the field.

import { useState } from "preact/hooks";
import type { Preferences } from "../state/preferences";
import { correction, DEFAULTS, readNumber, type NumberField as Field } from "../state/settings";

export function NumberField({ field, preferences }: { field: Field; preferences: Preferences }) {
  const { name } = field;
  const [typed, setTyped] = useState<string | undefined>();
  const [note, setNote] = useState("");
  const value = preferences.settings[name];
  const shown = typed ?? (value === null ? "" : String(value));
  // Esc may close the dialog before the field loses the focus.
  const type = (text: string) => {
    setTyped(text);
    const read = readNumber(field, text);
    if (read !== undefined && correction(field, text) === undefined) {
      preferences.change({ [name]: read });
    }
  };
  const accept = (text: string) => {
    const read = readNumber(field, text);
    setNote(correction(field, text) ?? "");
    if (read !== undefined) {
      preferences.change({ [name]: read });
    }
    setTyped(undefined);
  };
  // The arrow keys step, as in a field of type "number". That type would show a decimal comma in some languages.
  const key = (event: KeyboardEvent) => {
    const direction = event.key === "ArrowUp" ? 1 : event.key === "ArrowDown" ? -1 : 0;
    if (direction !== 0) {
      event.preventDefault();
      const now = preferences.settings[name] ?? DEFAULTS[name] ?? field.start ?? field.least;
      accept(String(Number((now + direction * field.step).toFixed(4))));
    }
  };
  return (
    <label class="field number-field">
      <span>
        <span>{field.label}</span>
        <small class="muted">{field.help}</small>
        <small class="correction" role="status">
          {note}
        </small>
      </span>
      <input
        type="text"
        inputMode={field.whole ? "numeric" : "decimal"}
        class="input number"
        placeholder={field.empty}
        value={shown}
        data-setting={name}
        onInput={({ currentTarget }) => type(currentTarget.value)}
        onChange={({ currentTarget }) => accept(currentTarget.value)}
        onKeyDown={key}
      />
    </label>
  );
}
