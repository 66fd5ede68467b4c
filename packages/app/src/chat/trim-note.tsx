// Says in the chat that older messages are left out of the prompt from here on, with the model's summary of them.

import { plural } from "../text/format";
import type { Trimmed } from "./tree";

export function TrimNote({ trimmed, writing }: { trimmed: Trimmed; writing: boolean }) {
  const { dropped, summary } = trimmed;
  const messages = `The ${plural(dropped, "oldest message")}`.replace("The 1 oldest", "The oldest");
  if (summary === "" && writing) {
    return <p class="trim-note">{`Summarising ${messages.toLowerCase()}…`}</p>;
  }
  if (!summary) {
    return <p class="trim-note">{`${messages} ${dropped === 1 ? "was" : "were"} left out to make room. The model no longer sees them.`}</p>;
  }
  return (
    <details class="trim-note">
      <summary>{`${messages} ${dropped === 1 ? "was" : "were"} replaced by a summary that the model wrote.`}</summary>
      <p>{summary}</p>
    </details>
  );
}
