// An error where it happened: what it means, what the user can do, and the exact message behind "Details".

import { explain, type Step } from "../text/errors";
import { Button } from "./button";

export interface StepAction {
  label: string;
  run: () => void;
}

/** The buttons for the steps that an error may suggest; a step without an entry has no button. */
export type Steps = Partial<Record<Step, StepAction | StepAction[]>>;

export function ErrorBox({ error, steps }: { error: unknown; steps: Steps }) {
  const { code, title, text, step, detail } = explain(error);
  const actions = [steps[step] ?? []].flat();
  return (
    <div class="error-box" role="alert" data-code={code}>
      <strong>{title}</strong>
      <p>{text}</p>
      {actions.length > 0 && (
        <div class="row">
          {actions.map(({ label, run }, index) => (
            <Button key={label} kind={index === 0 ? "primary" : "plain"} onClick={run}>
              {label}
            </Button>
          ))}
        </div>
      )}
      <details>
        <summary>Details</summary>
        <code>{`${code}: ${detail}`}</code>
      </details>
    </div>
  );
}
