// The benchmark: run or stop it, its curve and table, the result as a file or to the server.

import { useState } from "preact/hooks";
import { LOG_BYTES, type Server } from "../model/server";
import { fileDate, tokensPerSecond } from "../text/format";
import { Button } from "../ui/button";
import { confirm } from "../ui/dialog";
import { saveFile } from "../ui/files";
import { announce, notify, notifyError } from "../ui/notices";
import { useParts } from "../ui/parts";
import { benchmark, type Point } from "./benchmark";
import { Plot } from "./plot";
import { fullReport, shortReport, type Measured } from "./report";

const GENERATED = 32;
const REPEATS = 3;

export function BenchmarkCard() {
  const { host, support, server } = useParts();
  const { engine } = host;
  const [running, setRunning] = useState<AbortController | undefined>();
  const [progress, setProgress] = useState<{ points: readonly Point[]; share: number }>({ points: [], share: 0 });
  const [measured, setMeasured] = useState<Measured | undefined>();
  if (!engine && !measured) {
    return null;
  }
  const run = async () => {
    if (!engine) {
      return;
    }
    const controller = new AbortController();
    setRunning(controller);
    setMeasured(undefined);
    setProgress({ points: [], share: 0 });
    try {
      const onPoint = (points: readonly Point[], share: number) => setProgress({ points: [...points], share });
      const points = await benchmark(engine, { generated: GENERATED, repeats: REPEATS, signal: controller.signal, onPoint });
      setMeasured({
        measuredAt: new Date().toISOString(),
        browser: navigator.userAgent,
        adapter: support.kind === "yes" ? support.adapter : undefined,
        model: engine.info,
        generated: GENERATED,
        repeats: REPEATS,
        points,
      });
      announce("The benchmark is done");
    } catch (error) {
      notifyError(error);
    }
    setRunning(undefined);
  };
  return (
    <div class="card">
      <h2>Benchmark</h2>
      <p class="muted">Measures how fast the loaded model reads and generates text, also in long chats. Keep this tab in front.</p>
      <div class="row">
        {running ? (
          <Button onClick={() => running.abort()}>Stop</Button>
        ) : (
          <Button kind="primary" disabled={!engine} onClick={() => void run()}>
            {measured ? "Run again" : "Run the benchmark"}
          </Button>
        )}
        {measured && !running && (
          <Button icon="export" onClick={() => save(measured)}>
            Save as JSON
          </Button>
        )}
        {measured && !running && server.ours && <Button onClick={() => void send(measured, server)}>Send to this server</Button>}
      </div>
      {running && <progress max={1} value={progress.share} aria-label="Benchmark" />}
      {progress.points.length > 0 && <Result points={progress.points} />}
    </div>
  );
}

function Result({ points }: { points: readonly Point[] }) {
  return (
    <div>
      <Plot points={points} />
      <table class="results">
        <thead>
          <tr>
            <th scope="col">Tokens in context</th>
            <th scope="col">Generation</th>
            <th scope="col">Range</th>
            <th scope="col">Prompt</th>
          </tr>
        </thead>
        <tbody>
          {points.map(({ depth, decode, prompt }) => (
            <tr key={depth}>
              <th scope="row">{depth}</th>
              <td>{tokensPerSecond(decode.median)}</td>
              <td>{`${decode.least.toFixed(1)} – ${decode.most.toFixed(1)}`}</td>
              <td>{prompt === undefined ? "–" : tokensPerSecond(prompt)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function save(measured: Measured): void {
  saveFile(`rullama-benchmark-${fileDate(Date.now())}.json`, new Blob([fullReport(measured)], { type: "application/json" }));
}

async function send(measured: Measured, server: Server): Promise<void> {
  const text = shortReport(measured, LOG_BYTES);
  const shown = (
    <>
      <p>This text is sent to the server that this page came from, and nowhere else:</p>
      <pre class="preview" tabIndex={0}>
        {text}
      </pre>
    </>
  );
  if (!(await confirm("Send the result?", shown, "Send", "primary"))) {
    return;
  }
  try {
    await server.log("benchmark", text);
    notify("Sent. Thank you.");
  } catch (error) {
    notifyError(error);
  }
}
