// Records a sound: level, time, and the limit. Closing the dialog discards the recording.

import { useEffect, useRef, useState } from "preact/hooks";
import { Button } from "../ui/button";
import { openDialog } from "../ui/dialog";
import { ErrorBox } from "../ui/error-box";
import { announce } from "../ui/notices";
import { Recorder } from "./recorder";

/** Below this, there is no sound. */
const SILENT = 0.08;

/** Seconds before the limit from which on the dialog tells how many are left. */
const NEAR = 5;

/** Seconds of silence after which the dialog mentions it. */
const SUSPICIOUS = 3;

type State = { kind: "asking" } | { kind: "recording" } | { kind: "full"; file: File } | { kind: "failed"; error: unknown };

/** Gives the recording; undefined if the user cancels. */
export async function recordSound(longest: number): Promise<File | undefined> {
  let file: File | undefined;
  const keep = (recorded: File) => {
    file = recorded;
  };
  const result = await openDialog("Record a sound", (close) => <RecordPanel longest={longest} keep={keep} close={close} />, { class: "recording" });
  return result === "attach" ? file : undefined;
}

interface PanelProps {
  longest: number;
  keep: (file: File) => void;
  close: (result: string) => void;
}

function RecordPanel({ longest, keep, close }: PanelProps) {
  const [state, setState] = useState<State>({ kind: "asking" });
  const recorder = useRef<Recorder | undefined>(undefined);
  const fail = (error: unknown) => setState({ kind: "failed", error });
  useEffect(() => {
    let closed = false;
    Recorder.start().then((started) => {
      if (closed) {
        return started.cancel();
      }
      recorder.current = started;
      announce(`Recording. At most ${longest} seconds.`);
      setState({ kind: "recording" });
    }, fail);
    return () => {
      closed = true;
      recorder.current?.cancel();
    };
  }, []);
  // Enter does what most users want next, and not "Cancel".
  useEffect(() => document.querySelector<HTMLElement>(".dialog.recording .primary:not(:disabled)")?.focus(), [state.kind]);
  const finish = async (ended: (file: File) => void) => {
    try {
      const file = await (recorder.current as Recorder).finish(longest);
      keep(file);
      ended(file);
    } catch (error) {
      fail(error);
    }
  };
  const full = (file: File) => {
    announce(`The recording ended at ${longest} seconds.`);
    setState({ kind: "full", file });
  };
  if (state.kind === "failed") {
    return (
      <>
        <ErrorBox error={state.error} steps={{}} />
        <div class="dialog-actions">
          <Button onClick={() => close("")}>Close</Button>
        </div>
      </>
    );
  }
  return (
    <>
      {state.kind === "asking" && <p class="muted">{`Allow the microphone if the browser asks. A recording has at most ${longest} seconds.`}</p>}
      {state.kind === "recording" && <Progress recorder={recorder.current as Recorder} longest={longest} full={() => void finish(full)} />}
      {state.kind === "full" && (
        <>
          <p>{`The recording ended at ${longest} seconds, the most that a model hears at once.`}</p>
          <Player file={state.file} />
        </>
      )}
      <div class="dialog-actions">
        <Button onClick={() => close("")}>{state.kind === "full" ? "Discard" : "Cancel"}</Button>
        {state.kind === "full" ? (
          <Button kind="primary" onClick={() => close("attach")}>
            Attach
          </Button>
        ) : (
          <Button kind="primary" icon="stop" class="finish" disabled={state.kind === "asking"} onClick={() => void finish(() => close("attach"))}>
            Stop and attach
          </Button>
        )}
      </div>
    </>
  );
}

function Progress({ recorder, longest, full }: { recorder: Recorder; longest: number; full: () => void }) {
  const [seconds, setSeconds] = useState(0);
  const bar = useRef<HTMLSpanElement>(null);
  const heard = useRef(0);
  useEffect(() => {
    let frame = 0;
    const look = () => {
      const { level } = recorder;
      bar.current?.style.setProperty("width", `${Math.round(level * 100)}%`);
      if (level > SILENT) {
        heard.current = recorder.seconds;
      }
      frame = requestAnimationFrame(look);
    };
    look();
    // A hidden page gets no frames, but must not record for longer either.
    const timer = setInterval(() => {
      setSeconds(recorder.seconds);
      if (recorder.seconds >= longest) {
        clearInterval(timer);
        full();
      }
    }, 100);
    return () => {
      cancelAnimationFrame(frame);
      clearInterval(timer);
    };
  }, []);
  const left = Math.max(0, Math.ceil(longest - seconds));
  useEffect(() => {
    if (left === NEAR) {
      announce(`${NEAR} seconds left`);
    }
  }, [left]);
  return (
    <div class="recorder">
      <div class="row between">
        <span class="recorder-time">{`${time(Math.min(seconds, longest))} of ${time(longest)}`}</span>
        {left <= NEAR && <span class="recorder-left">{`ends in ${left} s`}</span>}
      </div>
      <span class="level" aria-hidden="true">
        <span class="level-fill" ref={bar} />
      </span>
      <p class="muted small">
        {seconds - heard.current > SUSPICIOUS ? "There is no sound. Is the right microphone chosen, and turned on?" : `A recording has at most ${longest} seconds. It stays on this device.`}
      </p>
    </div>
  );
}

function Player({ file }: { file: File }) {
  const [url, setUrl] = useState<string | undefined>();
  useEffect(() => {
    const made = URL.createObjectURL(file);
    setUrl(made);
    return () => URL.revokeObjectURL(made);
  }, [file]);
  return <audio class="player" controls src={url} aria-label="The recording" />;
}

function time(seconds: number): string {
  return `${Math.floor(seconds / 60)}:${String(Math.floor(seconds % 60)).padStart(2, "0")}`;
}
