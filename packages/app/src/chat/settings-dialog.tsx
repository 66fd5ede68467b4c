// The settings: system prompt, replies, context size, error reports.

import { useEffect, useRef, useState } from "preact/hooks";
import type { ComponentChildren } from "preact";
import type { ImageBudget } from "rullama";
import { sensesOf } from "../attach/senses";
import { BACKENDS, FIELDS, type BackendSetting, type NumberField as Field } from "../state/settings";
import { count } from "../text/format";
import { Button, IconButton } from "../ui/button";
import { openDialog } from "../ui/dialog";
import type { Parts } from "../ui/parts";
import { NumberField } from "./number-field";
import { BUDGETS, budgetFor } from "./soft-tokens";

export function openSettings(parts: Parts): void {
  void openDialog("Settings", (close) => <SettingsPanel parts={parts} close={() => close("")} />, { class: "panel" });
}

const CONTEXT = FIELDS.find(({ name }) => name === "context") as Field;
const OTHERS = FIELDS.filter((field) => field !== CONTEXT);

function SettingsPanel({ parts, close }: { parts: Parts; close: () => void }) {
  const { preferences, server } = parts;
  const [resets, setResets] = useState(0);
  const reset = () => {
    preferences.reset();
    setResets(resets + 1);
  };
  return (
    <>
      <IconButton label="Close" icon="close" class="dialog-close" onClick={close} />
      <div class="panel-body" key={resets}>
        <Section title="This chat">
          <SystemPrompt parts={parts} />
        </Section>
        <Section title="Replies">
          {OTHERS.map((field) => (
            <NumberField key={field.name} field={field} preferences={preferences} />
          ))}
        </Section>
        {sensesOf(parts.host).image && parts.host.engine && (
          <Section title="Images">
            <ImageDetailField parts={parts} />
          </Section>
        )}
        <Section title="Loading">
          <NumberField field={CONTEXT} preferences={preferences} />
          <BackendField parts={parts} />
          <LoadNote parts={parts} close={close} />
        </Section>
        {/* Other servers have no log. */}
        {(server.ours || preferences.settings.report) && (
          <Section title="This server">
            <label class="check spread">
              <span>
                <span>Report errors to this server</span>
                <small class="muted">Its log gets error messages and the name of your browser, never the content of a chat.</small>
              </span>
              <input
                type="checkbox"
                class="toggle"
                role="switch"
                data-setting="report"
                checked={preferences.settings.report}
                onChange={({ currentTarget }) => preferences.change({ report: currentTarget.checked })}
              />
            </label>
          </Section>
        )}
        <div class="row end">
          <Button onClick={reset}>Reset to defaults</Button>
        </div>
      </div>
    </>
  );
}

function Section({ title, children }: { title: string; children: ComponentChildren }) {
  return (
    <section class="settings-section">
      <h3>{title}</h3>
      {children}
    </section>
  );
}

function SystemPrompt({ parts: { chat, preferences } }: { parts: Parts }) {
  const [text, setText] = useState(chat.conversation.system);
  const [forAll, setForAll] = useState(text !== "" && preferences.settings.system === text);
  const latest = useRef(text);
  latest.current = text;
  // Esc may close the dialog before the field loses the focus.
  useEffect(
    () => () => {
      if (latest.current !== chat.conversation.system) {
        void chat.setSystem(latest.current);
      }
    },
    [],
  );
  const save = (prompt: string, all: boolean) => {
    void chat.setSystem(prompt);
    if (all || forAll) {
      preferences.change({ system: all ? prompt : "" });
    }
    setForAll(all);
  };
  return (
    <>
      <label class="field">
        <span>System prompt</span>
        <textarea
          class="input"
          rows={4}
          placeholder="You are a helpful assistant."
          value={text}
          onInput={({ currentTarget }) => setText(currentTarget.value)}
          onChange={() => save(text, forAll)}
        />
      </label>
      <label class="check">
        <input type="checkbox" checked={forAll} onChange={({ currentTarget }) => save(text, currentTarget.checked)} />
        <span>Use it for new chats</span>
      </label>
    </>
  );
}

/** How many tokens each image may take. */
function ImageDetailField({ parts: { preferences, host } }: { parts: Parts }) {
  const budgets = host.engine?.info.media?.imageBudgets ?? [];
  const imageBudget = host.engine ? budgetFor(host.engine.info, preferences.settings.imageBudget) : preferences.settings.imageBudget;
  return (
    <label class="field number-field">
      <span>
        <span>Image detail</span>
        <small class="muted">The most tokens that an image takes. With more, the model can read smaller text, but looks at it for longer and has less context left. 280 is usual.</small>
      </span>
      <select class="input" data-setting="imageBudget" onChange={({ currentTarget }) => preferences.change({ imageBudget: Number(currentTarget.value) as ImageBudget })}>
        {(budgets.length > 0 ? budgets : BUDGETS).map((budget) => (
          <option key={budget} value={budget} selected={budget === imageBudget}>
            {count(budget)}
          </option>
        ))}
      </select>
    </label>
  );
}

/** What computes. */
function BackendField({ parts: { preferences, support } }: { parts: Parts }) {
  const { backend } = preferences.settings;
  return (
    <label class="field number-field">
      <span>
        <span>Compute on</span>
        <small class="muted">{`Automatic uses the GPU if it can be relied on, otherwise the CPU. Here that is the ${support.auto.kind === "gpu" ? "GPU" : "CPU"}.`}</small>
      </span>
      <select class="input" data-setting="backend" onChange={({ currentTarget }) => preferences.change({ backend: currentTarget.value as BackendSetting })}>
        {BACKENDS.map(([value, label]) => (
          <option key={value} value={value} selected={value === backend}>
            {label}
          </option>
        ))}
      </select>
    </label>
  );
}

/** These settings take effect when the model is loaded again. */
function LoadNote({ parts: { preferences, host }, close }: { parts: Parts; close: () => void }) {
  const { state } = host;
  const { context, backend } = preferences.settings;
  const info = state.kind === "ready" ? state.engine.info : undefined;
  const contextDiffers = state.kind === "ready" && context !== state.settings.context && context !== info?.context;
  const backendDiffers = state.kind === "ready" && backend !== state.settings.backend;
  const now = contextDiffers ? `Now ${count(info?.context ?? 0)} tokens.` : `Now the ${info?.backend.kind === "gpu" ? "GPU" : "CPU"} computes.`;
  const reload = () => {
    close();
    if (state.kind === "ready") {
      void host.load(state.choice);
    }
  };
  return (
    <div class="row between" aria-live="polite">
      {(contextDiffers || backendDiffers) && (
        <>
          <small class="muted">{`${now} Load the model again to change it.`}</small>
          <Button onClick={reload}>Load again</Button>
        </>
      )}
    </div>
  );
}
