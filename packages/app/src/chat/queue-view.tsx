// The messages that are sent when the reply that is being written ends.

import { Button, IconButton } from "../ui/button";
import { Icon } from "../ui/icons";
import { focusComposer } from "../ui/navigation";
import { useParts } from "../ui/parts";
import { summaryOf } from "./attachments";

export function Queue() {
  const { chat } = useParts();
  const queued = chat.queue.of(chat.conversation);
  if (queued.length === 0) {
    return null;
  }
  const edit = (id: string) => {
    chat.unqueue(id);
    focusComposer();
  };
  return (
    <ul class="queue" aria-label="Queued messages">
      {queued.map(({ id, text, attachments }) => (
        <li key={id}>
          <span class="queue-label">{chat.writing ? "Queued" : "Not sent"}</span>
          {attachments.length > 0 && (
            <span class="queue-attached">
              <Icon name="attach" />
              {summaryOf(attachments)}
            </span>
          )}
          <span class="queue-text">{text}</span>
          {!chat.writing && (
            <Button kind="quiet" onClick={() => void chat.sendQueued(id)}>
              Send
            </Button>
          )}
          <IconButton label="Edit the queued message" icon="edit" onClick={() => edit(id)} />
          <IconButton label="Remove the queued message" icon="close" onClick={() => chat.dropQueued(id)} />
        </li>
      ))}
    </ul>
  );
}
