// A value that changes with every token is rendered once per frame at most.

import { useSignalEffect } from "@preact/signals";
import { useRef, useState } from "preact/hooks";

/** Renders the component again, in the next frame, when a signal that `read` uses has changed. Gives the number of that render. */
export function useFrame(read: () => unknown): number {
  const [renders, setRenders] = useState(0);
  const frame = useRef(0);
  useSignalEffect(() => {
    read();
    // A hidden tab gets no frames. It renders everything when it is shown again.
    frame.current ||= requestAnimationFrame(() => {
      frame.current = 0;
      setRenders((count) => count + 1);
    });
    return undefined;
  });
  return renders;
}
