// The buttons of the composer that attach something: a menu of images, sounds and the camera; and the microphone. The dialogs are loaded
// when they are first opened.

import { useRef } from "preact/hooks";
import { ACCEPT } from "../chat/attachments";
import { Button, IconButton } from "../ui/button";
import { pickFiles } from "../ui/files";
import { Icon } from "../ui/icons";
import { focusComposer, isTouch } from "../ui/navigation";
import { notifyError } from "../ui/notices";
import { useParts } from "../ui/parts";
import { attachFiles } from "./attach";
import { reasonAgainst, sensesOf } from "./senses";

export function AttachMenu() {
  const parts = useParts();
  const menu = useRef<HTMLDetailsElement>(null);
  const senses = sensesOf(parts.host);
  const reasons = [...new Set([reasonAgainst("image", senses), reasonAgainst("audio", senses)])].filter((reason) => reason !== undefined);
  const then = (choose: () => Promise<(File | undefined)[]>) => () => {
    (menu.current as HTMLDetailsElement).open = false;
    void choose().then(async (files) => {
      await attachFiles(parts, files.filter((file) => file !== undefined));
      focusAfter();
    }, notifyError);
  };
  // A phone's own camera app is better than a dialog, and asks for no permission.
  const photo = () => (isTouch() ? pickFiles("image/*", false, { camera: true }) : import("./camera-dialog").then(async ({ takePhoto }) => [await takePhoto()]));
  return (
    <details class="menu attach-menu" ref={menu}>
      <summary aria-label="Attach" title="Attach an image or a sound">
        <Icon name="attach" />
      </summary>
      <div class="menu-items">
        <Button kind="quiet" icon="image" disabled={!senses.image} onClick={then(() => pickFiles(ACCEPT.image, true))}>
          Images
        </Button>
        <Button kind="quiet" icon="camera" disabled={!senses.image} onClick={then(photo)}>
          Take a photo
        </Button>
        <Button kind="quiet" icon="sound" disabled={!senses.audio} onClick={then(() => pickFiles(ACCEPT.audio, true))}>
          Sounds
        </Button>
        {reasons.map((reason) => (
          <p key={reason} class="muted small menu-note">
            {reason}
          </p>
        ))}
      </div>
    </details>
  );
}

export function RecordButton() {
  const parts = useParts();
  const senses = sensesOf(parts.host);
  if (!senses.audio) {
    return null;
  }
  const record = async () => {
    const { recordSound } = await import("./record-dialog");
    const file = await recordSound(senses.longest);
    if (file) {
      await attachFiles(parts, [file]);
      focusAfter();
    }
  };
  return <IconButton label="Record a sound" icon="microphone" class="record" onClick={() => void record().catch(notifyError)} />;
}

/** What was attached is to be asked about. */
function focusAfter(): void {
  if (!isTouch()) {
    focusComposer();
  }
}
