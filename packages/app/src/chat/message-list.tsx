// The messages of the shown branch.

import { useParts } from "../ui/parts";
import { MessageView } from "./message-view";
import { path, place } from "./tree";

export function MessageList({ follow }: { follow: () => void }) {
  const { chat } = useParts();
  const { conversation } = chat;
  return (
    <div class="messages" role="log" aria-live="off" aria-label="Messages">
      {path(conversation).map((message) => (
        <MessageView key={message.id} message={message} place={place(conversation, message.id)} follow={follow} />
      ))}
    </div>
  );
}
