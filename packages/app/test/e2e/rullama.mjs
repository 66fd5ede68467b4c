// `rullama serve` as people run it: the built app, a store as Ollama makes it, with a small model in it,
// and the demo model.

import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { copyFile, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

const here = (path) => fileURLToPath(new URL(path, import.meta.url));

/** Milliseconds for the server to say where it is. */
const PATIENCE = 30_000;

/** What the model in the store is called. */
export const SERVED = "gemma4:micro";

/** Where `cargo build --package rullama` puts the program. */
export const PROGRAM = here("../../../../target/debug/rullama");

/** Starts it. `pull` puts another file of testdata in the place of the model, as pulling a newer one does; `logs` reads its log. */
export async function serveRullama(program) {
  if (!existsSync(program)) {
    throw new Error(`${program} is missing: cargo build --package rullama`);
  }
  const store = await mkdtemp(join(tmpdir(), "rullama-e2e-store-"));
  await pull(store, "micro-e2b-Q8_0.gguf");
  const child = spawn(program, ["serve", "--port", "0", "--models", store, "--app", here("../../dist")], { stdio: ["ignore", "pipe", "inherit"] });
  const end = () => child.kill();
  process.on("exit", end);
  const address = await new Promise((resolve, reject) => {
    setTimeout(() => reject(new Error("rullama serve does not say where it is")), PATIENCE).unref();
    child.on("error", reject);
    child.on("exit", (code) => reject(new Error(`rullama serve ended with ${code}`)));
    createInterface({ input: child.stdout }).once("line", resolve);
  });
  const origin = new URL(address).origin;
  return {
    origin,
    pull: (file) => pull(store, file),
    logs: async (tag) => (await (await fetch(`${origin}/api/log?tag=${tag}`)).json()).messages,
    close: async () => {
      process.off("exit", end);
      end();
      await rm(store, { recursive: true, force: true });
    },
  };
}

async function pull(store, file) {
  const path = here(`../../../../testdata/gguf/${file}`);
  const blob = async (bytes) => {
    const hex = createHash("sha256").update(bytes).digest("hex");
    await mkdir(join(store, "blobs"), { recursive: true });
    return { digest: `sha256:${hex}`, size: bytes.length, path: join(store, "blobs", `sha256-${hex}`) };
  };
  const described = JSON.stringify({ model_format: "gguf", model_family: "gemma4", model_type: "1.8M", file_type: "Q8_0" });
  const weights = await blob(await readFile(path));
  const config = await blob(Buffer.from(described));
  await copyFile(path, weights.path);
  await writeFile(config.path, described);
  const layer = (kind, { digest, size }) => ({ mediaType: `application/vnd.${kind}`, digest, size });
  const manifest = {
    schemaVersion: 2,
    mediaType: "application/vnd.docker.distribution.manifest.v2+json",
    config: layer("docker.container.image.v1+json", config),
    layers: [layer("ollama.image.model", weights)],
  };
  const place = join(store, "manifests/registry.ollama.ai/library/gemma4/micro");
  await mkdir(dirname(place), { recursive: true });
  await writeFile(place, JSON.stringify(manifest));
}
