// Continuing an answer that was cut off: the prompt is rendered as usual, and the part that exists is appended to it.
//
// The chat interface always starts a new turn, so this uses plain generation. It hides special tokens, so the end of a thought
// is recognised by its token.
//
// Plain generation takes no images or sounds. An answer to a prompt with some is continued by a request instead, which is not shown.

import type { Engine, Message } from "rullama";

const THOUGHT = "<|channel>thought\n";
const END_OF_THOUGHT = "<channel|>";

export interface Partial {
  content: string;
  thought?: string;
}

export interface Continuation {
  ids: Uint32Array;
  /** The token that ends the thought, if the answer was cut off inside its thought. */
  thoughtEnd: number | undefined;
}

export async function continuation(engine: Engine, messages: Message[], partial: Partial, think: boolean): Promise<Continuation> {
  const rendered = await engine.render(messages, { think });
  const ids = await engine.tokenize(rendered + partialText(partial));
  const inThought = partial.content === "" && Boolean(partial.thought);
  const [end] = inThought ? await engine.tokenize(END_OF_THOUGHT) : [];
  return { ids, thoughtEnd: end };
}

/** The messages that ask for the rest of an answer. */
export function continuationRequest(content: string): Message[] {
  return [
    { role: "assistant", content },
    { role: "user", content: "Continue your last answer exactly where it ended. Repeat nothing, and add no introduction." },
  ];
}

/** The part of an answer that exists, as the model wrote it. */
export function partialText({ content, thought }: Partial): string {
  if (!thought) {
    return content;
  }
  return content === "" ? `${THOUGHT}${thought}` : `${THOUGHT}${thought.trimEnd()}\n${END_OF_THOUGHT}${content}`;
}
