// The self-test: runs every kind of shader on a known input, and measures the memory bandwidth. Needs no model.

import { useRef, useState } from "preact/hooks";
import { examine, type DeviceReport } from "rullama";
import { bytesPerSecond } from "../text/format";
import { Button } from "../ui/button";
import { ErrorBox } from "../ui/error-box";
import { announce } from "../ui/notices";

type Result = { report: DeviceReport } | { error: unknown };

export function ExaminationCard() {
  const [running, setRunning] = useState<AbortController | undefined>();
  const [result, setResult] = useState<Result | undefined>();
  const ran = useRef(false);
  const run = async () => {
    const controller = new AbortController();
    setRunning(controller);
    setResult(undefined);
    try {
      const report = await examine({ signal: controller.signal });
      setResult({ report });
      announce(summary(report));
    } catch (error) {
      setResult(controller.signal.aborted ? undefined : { error });
    }
    ran.current = true;
    setRunning(undefined);
  };
  return (
    <div class="card">
      <h2>Self-test</h2>
      <p class="muted">Checks that your GPU computes correct results, and measures how fast it reads memory. It takes a few seconds.</p>
      <div class="row">
        {running ? (
          <Button onClick={() => running.abort()}>Stop</Button>
        ) : (
          <Button kind="primary" onClick={() => void run()}>
            {ran.current ? "Run again" : "Run the self-test"}
          </Button>
        )}
      </div>
      {running && <progress aria-label="Self-test" />}
      {result && ("report" in result ? <Report report={result.report} /> : <ErrorBox error={result.error} steps={{}} />)}
    </div>
  );
}

function summary({ selfTests }: DeviceReport): string {
  const failed = selfTests.filter(({ passed }) => !passed).length;
  return failed === 0 ? `All ${selfTests.length} tests passed.` : `${failed} of ${selfTests.length} tests failed.`;
}

function Report({ report }: { report: DeviceReport }) {
  const { selfTests, fallbacks, bandwidth } = report;
  const sound = selfTests.every(({ passed }) => passed);
  return (
    <div>
      <p class={sound ? "verdict good" : "verdict fair"}>{summary(report)}</p>
      <p>{`Memory bandwidth: ${bytesPerSecond(bandwidth)}.`}</p>
      {fallbacks.map((fallback) => (
        <p key={fallback} class="verdict fair">{`Worked around: ${fallback}`}</p>
      ))}
      <details open={!sound}>
        <summary>All tests</summary>
        <ul class="small">
          {selfTests.map(({ name, passed, detail }) => (
            <li key={name}>{passed ? `${name}: passed` : `${name}: failed, ${detail}`}</li>
          ))}
        </ul>
      </details>
    </div>
  );
}
