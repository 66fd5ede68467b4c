// Takes a photo with the camera of a computer: a picture of what it sees, and a shutter button. Phones have their own camera app.

import { useEffect, useRef, useState } from "preact/hooks";
import { Button } from "../ui/button";
import { openDialog } from "../ui/dialog";
import { ErrorBox } from "../ui/error-box";
import { clock, openDevice } from "./recorder";

const QUALITY = 0.92;

/** Gives the photo; undefined if the user cancels. */
export async function takePhoto(): Promise<File | undefined> {
  let photo: File | undefined;
  const keep = (taken: File) => {
    photo = taken;
  };
  const result = await openDialog("Take a photo", (close) => <CameraPanel keep={keep} close={close} />, { class: "camera" });
  return result === "attach" ? photo : undefined;
}

function CameraPanel({ keep, close }: { keep: (photo: File) => void; close: (result: string) => void }) {
  const video = useRef<HTMLVideoElement>(null);
  const [ready, setReady] = useState(false);
  const [error, setError] = useState<unknown>();
  useEffect(() => {
    let stream: MediaStream | undefined;
    let closed = false;
    const stop = () => stream?.getTracks().forEach((track) => track.stop());
    openDevice({ video: { width: { ideal: 1920 }, height: { ideal: 1080 } } }).then((opened) => {
      stream = opened;
      if (closed || !video.current) {
        return stop();
      }
      video.current.srcObject = stream;
    }, setError);
    return () => {
      closed = true;
      stop();
    };
  }, []);
  useEffect(() => document.querySelector<HTMLElement>(".dialog.camera .primary:not(:disabled)")?.focus(), [ready]);
  const shoot = async () => {
    try {
      keep(await photoOf(video.current as HTMLVideoElement));
      close("attach");
    } catch (thrown) {
      setError(thrown);
    }
  };
  return (
    <>
      {error === undefined ? (
        <video ref={video} class="camera-view" autoPlay muted playsInline aria-label="What the camera sees" onLoadedData={() => setReady(true)} />
      ) : (
        <ErrorBox error={error} steps={{}} />
      )}
      {error === undefined && !ready && <p class="muted small">Allow the camera if the browser asks.</p>}
      <div class="dialog-actions">
        <Button onClick={() => close("")}>{error === undefined ? "Cancel" : "Close"}</Button>
        {error === undefined && (
          <Button kind="primary" icon="camera" disabled={!ready} onClick={() => void shoot()}>
            Take the photo
          </Button>
        )}
      </div>
    </>
  );
}

async function photoOf(video: HTMLVideoElement): Promise<File> {
  const canvas = document.createElement("canvas");
  canvas.width = video.videoWidth;
  canvas.height = video.videoHeight;
  canvas.getContext("2d")?.drawImage(video, 0, 0);
  const content = await new Promise<Blob | null>((resolve) => canvas.toBlob(resolve, "image/jpeg", QUALITY));
  if (!content) {
    throw Object.assign(new Error("the camera gave no picture"), { code: "capture.busy", details: { device: "camera" } });
  }
  return new File([content], `photo-${clock()}.jpg`, { type: "image/jpeg" });
}
