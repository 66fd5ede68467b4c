// How full the context is, including the message that is being typed.

import { useEffect, useState } from "preact/hooks";
import type { ImageBudget } from "rullama";
import { count } from "../text/format";
import { classes } from "../ui/button";
import { useParts } from "../ui/parts";
import type { Attachment } from "./attachments";
import { promptOf } from "./prompt";
import { budgetFor, softTokens } from "./soft-tokens";
import { measureWith } from "./trim";
import { useFrame } from "./use-frame";

export function ContextMeter({ draft, attachments }: { draft: string; attachments: readonly Attachment[] }) {
  const { chat, host } = useParts();
  const budget = useBudget();
  useFrame(() => chat.growth);
  const counted = useTokens();
  const context = host.engine?.info.context;
  const { writing, conversation } = chat;
  const typed = draftTokens(draft) + softTokens(attachments, budget);
  const written = writing?.conversation === conversation ? writing.tokens : 0;
  const used = (counted ?? 0) + written + typed;
  if (context === undefined || counted === undefined || used === 0) {
    return null;
  }
  const share = Math.min(1, used / context);
  const text = `${typed > 0 ? "about " : ""}${count(used)} of ${count(context)} tokens`;
  return (
    <div
      class={classes("meter", share > 0.9 && "full")}
      role="meter"
      aria-label="Context used"
      aria-valuemin={0}
      aria-valuenow={used}
      aria-valuemax={context}
      aria-valuetext={text}
      title={share > 0.9 ? "The context is almost full. When it is full, you can leave out the oldest messages." : undefined}
    >
      <span class="meter-bar">
        <span class="meter-fill" style={{ width: `${Math.round(share * 100)}%` }} />
      </span>
      <span class="meter-text">{text}</span>
    </div>
  );
}

/** The tokens that each image may take. */
function useBudget(): ImageBudget {
  const { host, preferences } = useParts();
  const { imageBudget } = preferences.settings;
  return host.engine ? budgetFor(host.engine.info, imageBudget) : imageBudget;
}

/** The tokens of the shown branch, as the loaded model counts them; undefined while that is unknown. */
function useTokens(): number | undefined {
  const { chat, host } = useParts();
  const budget = useBudget();
  const [tokens, setTokens] = useState<number | undefined>();
  const { engine } = host;
  const { conversation, writing } = chat;
  const answering = writing?.conversation === conversation ? writing.message : undefined;
  useEffect(() => {
    if (!engine || conversation.messages.length === 0) {
      setTokens(engine ? 0 : undefined);
      return;
    }
    let outdated = false;
    void measureWith(engine, budget)(promptOf(conversation, answering?.parent ?? undefined))
      .catch(() => undefined)
      .then((length) => !outdated && setTokens(length));
    return () => {
      outdated = true;
    };
  }, [engine, conversation, answering, conversation.messages.length, JSON.stringify(conversation.shown), conversation.system, chat.finished, budget]);
  return tokens;
}

/** An estimate: an exact count would have to wait for the engine. */
function draftTokens(text: string): number {
  return Math.ceil(text.trim().length / 4);
}
