// The speed of the answer that is being written.

import { tokensPerSecond } from "../text/format";
import { useParts } from "../ui/parts";
import { useFrame } from "./use-frame";

export function LiveRate() {
  const { chat } = useParts();
  useFrame(() => chat.growth);
  const { writing, conversation } = chat;
  const rate = writing?.conversation === conversation ? writing.rate : undefined;
  return (
    <span class="live-rate" aria-hidden="true">
      {rate === undefined ? "" : tokensPerSecond(rate)}
    </span>
  );
}
