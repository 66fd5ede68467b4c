// Images as thumbnails that open larger, sounds as players. In a draft each has a button that removes it.

import { titleOfAttachment, type Attachment } from "../chat/attachments";
import { classes, IconButton } from "../ui/button";
import { openDialog } from "../ui/dialog";
import { Icon } from "../ui/icons";
import { useContentUrl } from "./content-url";

interface TilesProps {
  attachments: readonly Attachment[];
  remove?: ((attachment: Attachment) => void) | undefined;
}

export function AttachmentTiles({ attachments, remove }: TilesProps) {
  if (attachments.length === 0) {
    return null;
  }
  return (
    <ul class="attachments" aria-label="Attachments">
      {attachments.map((attachment) => (
        <li key={attachment.id} class={classes("attachment", attachment.medium)}>
          {attachment.medium === "image" ? <Thumbnail attachment={attachment} /> : <Player attachment={attachment} />}
          {remove && <IconButton label={`Remove ${titleOfAttachment(attachment)}`} icon="close" class="attachment-remove" onClick={() => remove(attachment)} />}
        </li>
      ))}
    </ul>
  );
}

function Thumbnail({ attachment }: { attachment: Attachment }) {
  const content = useContentUrl(attachment.id);
  const title = titleOfAttachment(attachment);
  if (content.kind === "missing") {
    return <Missing title={title} />;
  }
  return (
    <button type="button" class="thumbnail" aria-label={`Show ${title} larger`} title={title} disabled={content.kind !== "ready"} onClick={() => content.kind === "ready" && showLarge(title, content.url)}>
      {content.kind === "ready" && <img src={content.url} alt={title} decoding="async" />}
    </button>
  );
}

function Player({ attachment }: { attachment: Attachment }) {
  const content = useContentUrl(attachment.id);
  const title = titleOfAttachment(attachment);
  if (content.kind === "missing") {
    return <Missing title={title} />;
  }
  return (
    <figure class="sound">
      <audio class="player" controls preload="metadata" src={content.kind === "ready" ? content.url : undefined} aria-label={title} />
      <figcaption>{title}</figcaption>
    </figure>
  );
}

function Missing({ title }: { title: string }) {
  return (
    <span class="missing">
      <Icon name="attach" />
      <span>{`${title} is no longer stored`}</span>
    </span>
  );
}

function showLarge(title: string, url: string): void {
  void openDialog(
    title,
    (close) => (
      <>
        <IconButton label="Close" icon="close" class="dialog-close" onClick={() => close("")} />
        <img class="large-image" src={url} alt={title} />
      </>
    ),
    { class: "large" },
  );
}
