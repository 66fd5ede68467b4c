// The Models page: the loaded model, and every way to another one.

import { useEffect, useRef } from "preact/hooks";
import type { EngineInfo } from "rullama";
import { BackendLine } from "../device/backend-line";
import { bytes, count, parameters } from "../text/format";
import { Button } from "../ui/button";
import { ErrorBox } from "../ui/error-box";
import { Facts } from "../ui/facts";
import { pickFiles } from "../ui/files";
import { useParts } from "../ui/parts";
import { AddressCard } from "./address-card";
import type { ModelChoice } from "./choice";
import { DEMO_NAME, isDemo, isDemoChoice, isServedDemo } from "./demo";
import { DemoRow } from "./demo-row";
import { FileCard } from "./file-card";
import type { Failure } from "./host";
import { loadSteps } from "./load-steps";
import { CheckingPanel, ProgressPanel } from "./progress-panel";
import type { ServerModel } from "./server";
import { StoredRow } from "./stored-row";
import { StoreSpaceFacts, useStored } from "./stored-models";

export function ModelsView() {
  const { host, server, go } = useParts();
  const page = useRef<HTMLElement>(null);
  useEffect(() => void server.refresh(), []);
  const stored = useStored();
  const use = (choice: ModelChoice) => {
    page.current?.parentElement?.scrollTo({ top: 0 });
    void host.load(choice).then(() => {
      if (host.state.kind === "ready" && !host.failure && go.page === "models") {
        go.chat();
      }
    });
  };
  // The demo model has its own row.
  const groups = stored?.groups.filter(({ label }) => label !== DEMO_NAME) ?? [];
  const served = server.models?.filter((model) => !isServedDemo(model)) ?? [];
  const anyOther = stored === undefined || groups.some(({ label }) => !isDemo(label)) || served.length > 0;
  return (
    <section class="page" aria-label="Models" ref={page}>
      <h1>Models</h1>
      <p class="muted">rullama runs Gemma 4 models from GGUF files, the format that Ollama and llama.cpp use.</p>
      <Now />
      <div class="card demo">
        <ul class="rows" aria-label="Demo model">
          <DemoRow group={stored?.groups.find(({ label }) => label === DEMO_NAME)} use={use} />
        </ul>
      </div>
      {host.store === undefined && <p class="card muted">This browser can't store files here, as in a private window. You can use models, but not keep them.</p>}
      {groups.length > 0 && (
        <div class="card">
          <div class="row between">
            <h2>In this browser</h2>
            {stored && <StoreSpaceFacts space={stored.space} />}
          </div>
          <ul class="rows" aria-label="Stored models">
            {groups.map((group) => (
              <StoredRow key={group.label} group={group} use={use} />
            ))}
          </ul>
        </div>
      )}
      {served.length > 0 && <ServerModels models={served} use={use} />}
      {!anyOther && <WhereToGet />}
      <AddressCard use={use} />
      <FileCard use={use} />
    </section>
  );
}

/** The loaded model, progress, and what went wrong. */
function Now() {
  const { host } = useParts();
  const { state, failure, checking } = host;
  return (
    <div class="now">
      {checking && <CheckingPanel />}
      {failure && <LoadError failure={failure} />}
      {state.kind === "busy" && <ProgressPanel />}
      {state.kind === "failed" && <LoadError failure={state} />}
      {state.kind === "ready" && <LoadedModel />}
    </div>
  );
}

function LoadError({ failure }: { failure: Failure }) {
  const { host, go } = useParts();
  return <ErrorBox error={failure.error} steps={loadSteps(host, failure, { device: () => go.device(), settings: () => go.settings() })} />;
}

function LoadedModel() {
  const { host, go } = useParts();
  const { state } = host;
  if (state.kind !== "ready") {
    return null;
  }
  const { info } = state.engine;
  const addProjector = async (choice: ModelChoice) => {
    const [file] = await pickFiles(".gguf", false);
    if (file) {
      void host.load({ ...choice, projector: { file } });
    }
  };
  return (
    <div class="card current">
      <div class="row between">
        <div>
          <h2>{state.label}</h2>
          <p class="muted small">
            <Facts words={[`${parameters(info.parameters)} parameters`, `${count(info.context)} tokens of context`, `${bytes(info.memory.total)} of ${info.gpu ? "GPU memory" : "memory"}`, mediaWords(info)]} />
          </p>
          <BackendLine info={info} />
        </div>
        <div class="row">
          {!takesMedia(info) && !isDemoChoice(state.choice) && (
            <Button kind="quiet" title="A file mmproj-….gguf, for images and sounds" onClick={() => void addProjector(state.choice)}>
              Add a projector
            </Button>
          )}
          <Button onClick={() => void host.unload()}>Unload</Button>
          <Button kind="primary" onClick={() => go.chat()}>
            Chat
          </Button>
        </div>
      </div>
    </div>
  );
}

function takesMedia({ media }: EngineInfo): boolean {
  return media?.image === true || media?.audio === true;
}

/** What a model takes beside text. */
function mediaWords({ media }: EngineInfo): string {
  const more = [media?.image ? "images" : "", media?.audio ? "sounds" : ""].filter((word) => word !== "");
  return more.length === 0 ? "text only" : `text, ${more.join(" and ")}`;
}

function ServerModels({ models, use }: { models: readonly ServerModel[]; use: (choice: ModelChoice) => void }) {
  const { host } = useParts();
  const choice = ({ url, name, bytes: size, sha256 }: ServerModel): ModelChoice => ({
    kind: "address",
    url,
    name,
    keep: host.store !== undefined,
    ...(size > 0 ? { bytes: size } : {}),
    ...(sha256 ? { sha256 } : {}),
  });
  return (
    <div class="card">
      <h2>On this server</h2>
      <ul class="rows" aria-label="Models on this server">
        {models.map((model) => (
          <li class="row between" key={model.name}>
            <div class="grow">
              <strong>{model.name}</strong>
              <div class="muted small">
                <Facts words={[bytes(model.bytes), model.parameters, model.format, model.family]} />
              </div>
            </div>
            <Button kind="primary" title={`Use ${model.name}`} onClick={() => use(choice(model))}>
              Use
            </Button>
          </li>
        ))}
      </ul>
    </div>
  );
}

/** For users who have no model yet. */
function WhereToGet() {
  const { server } = useParts();
  return (
    <div class="card">
      <h2>Where to get a model</h2>
      {server.ours && (
        <>
          <p>
            {"This server has no other models yet. On the computer that it runs on, get one with "}
            <a href="https://ollama.com" rel="noreferrer" target="_blank">
              Ollama
            </a>
            {": "}
            <code>ollama pull gemma4:e2b</code>
          </p>
          <div class="row">
            <Button onClick={() => void server.refresh()}>Look again</Button>
          </div>
        </>
      )}
      <p class="muted">
        Hugging Face has Gemma 4 models as .gguf files. Enter the address of a file below, or download it and choose the file. E2B is the smallest.
      </p>
    </div>
  );
}
