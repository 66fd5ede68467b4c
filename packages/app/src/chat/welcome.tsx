// The chat page before the first message: which model is loaded or can be, and how far loading is.

import { keepFile } from "../attach/attach";
import { sensesOf } from "../attach/senses";
import { PlannedBackend } from "../device/backend-line";
import { labelOf } from "../model/choice";
import { DEMO_EXAMPLES, DEMO_LIMITS, DEMO_QUESTIONS, DEMO_TITLE, isDemoChoice, type DemoExample } from "../model/demo";
import { loadSteps } from "../model/load-steps";
import { CheckingPanel, ProgressPanel } from "../model/progress-panel";
import { Button } from "../ui/button";
import { ErrorBox } from "../ui/error-box";
import { Icon } from "../ui/icons";
import { notifyError } from "../ui/notices";
import { useParts } from "../ui/parts";
import type { Attachment } from "./attachments";

interface WelcomeProps {
  /** Whether the chat has no messages yet. */
  empty: boolean;
  ask: Ask;
}

/** Asks a question. Loads the model first, if necessary. */
export type Ask = (text: string, attachments?: readonly Attachment[]) => void;

export function Welcome(props: WelcomeProps) {
  return (
    <div class="welcome">
      <WelcomeContent {...props} />
    </div>
  );
}

function WelcomeContent({ empty, ask }: WelcomeProps) {
  const { host, go } = useParts();
  const { state, atHand, checking } = host;
  const isDemo = atHand !== undefined && isDemoChoice(atHand);
  if (state.kind === "busy") {
    return <ProgressPanel />;
  }
  if (checking) {
    return <CheckingPanel />;
  }
  if (state.kind === "failed") {
    return <ErrorBox error={state.error} steps={loadSteps(host, state, { models: () => go.models(), device: () => go.device(), settings: () => go.settings() })} />;
  }
  if (state.kind === "ready") {
    return !empty ? null : isDemo ? <DemoReady ask={ask} /> : <Ready label={state.label} />;
  }
  return (
    <>
      <h1>Chat with a model on your own device</h1>
      <p class="muted">{`${isDemo ? "A language model" : "Gemma 4"} runs in this browser tab. No account, no server, no tracking: your chats stay on this device.`}</p>
      <PlannedBackend />
      {isDemo ? <DemoOffer ask={ask} /> : <Offer />}
    </>
  );
}

function Ready({ label }: { label: string }) {
  return (
    <>
      <h1>How can I help?</h1>
      <p class="muted">{`${label} is ready. It runs on this device only.`}</p>
    </>
  );
}

function DemoReady({ ask }: { ask: Ask }) {
  const { go } = useParts();
  return (
    <>
      <h1>Ask about rullama</h1>
      <p class="muted">{`The demo model is ready. It runs on this device only. ${DEMO_LIMITS}`}</p>
      <Questions ask={ask} />
      <Examples ask={ask} />
      <div class="row centre">
        <Button kind="quiet" onClick={() => go.models()}>
          Choose another model
        </Button>
      </div>
    </>
  );
}

/** For users who have used a model before. */
function Offer() {
  const { host, go } = useParts();
  const { atHand, demo } = host;
  return (
    <div class="row centre">
      {atHand && (
        <Button kind="primary" onClick={() => void host.load(atHand)}>
          {`Load ${labelOf(atHand)}`}
        </Button>
      )}
      <Button kind={atHand ? "plain" : "primary"} onClick={() => go.models()}>
        Choose a model
      </Button>
      {!atHand && <Button onClick={() => void host.load(demo)}>Load the demo model</Button>}
    </div>
  );
}

/** For new users, and those who have used only the demo model. */
function DemoOffer({ ask }: { ask: Ask }) {
  const { host, go } = useParts();
  return (
    <div class="card demo">
      <h2>{DEMO_TITLE}</h2>
      <p class="muted">{`${DEMO_LIMITS} Ask a question to load it:`}</p>
      <Questions ask={ask} />
      <Examples ask={ask} />
      <div class="row centre">
        <Button kind="primary" onClick={() => void host.load(host.atHand ?? host.demo)}>
          Load the demo model
        </Button>
        <Button onClick={() => go.models()}>Choose another model</Button>
      </div>
    </div>
  );
}

/** Questions about an image and a sound, if the model takes them. */
function Examples({ ask }: { ask: Ask }) {
  const parts = useParts();
  const senses = sensesOf(parts.host);
  const shown = DEMO_EXAMPLES.filter(({ medium }) => senses[medium]);
  if (shown.length === 0) {
    return null;
  }
  const askAbout = async ({ url, name, question }: DemoExample) => {
    try {
      const response = await fetch(url);
      const file = new File([await response.blob()], name);
      ask(question, [await keepFile(parts, file, senses.longest)]);
    } catch (error) {
      notifyError(error);
    }
  };
  return (
    <ul class="examples" aria-label="Suggested questions about an image and a sound">
      {shown.map((example) => (
        <li key={example.medium}>
          <button type="button" class="button example" onClick={() => void askAbout(example)}>
            {example.medium === "image" ? <img src={example.url} alt="Four blue triangles" /> : <span class="example-sound"><Icon name="sound" /></span>}
            <span>{example.question}</span>
          </button>
        </li>
      ))}
    </ul>
  );
}

function Questions({ ask }: { ask: Ask }) {
  return (
    <ul class="questions" aria-label="Suggested questions">
      {DEMO_QUESTIONS.map((question) => (
        <li key={question}>
          <Button class="question" onClick={() => ask(question)}>
            {question}
          </Button>
        </li>
      ))}
    </ul>
  );
}
