// What the server that brought this page offers, if it is one of ours: models, and a place for measurements.

export interface ServerModel {
  name: string;
  bytes: number;
  url: string;
  sha256?: string;
  family?: string;
  parameters?: string;
  format?: string;
}

/** The models the server has; undefined if it is an ordinary server. */
export async function serverModels(): Promise<ServerModel[] | undefined> {
  try {
    const answer = await fetch("/api/models", { headers: { accept: "application/json" }, cache: "no-store" });
    if (!answer.ok || !answer.headers.get("content-type")?.includes("json")) {
      return undefined;
    }
    const { models } = (await answer.json()) as { models?: unknown };
    return Array.isArray(models) ? models.flatMap(readModel) : undefined;
  } catch {
    return undefined;
  }
}

function readModel(value: unknown): ServerModel[] {
  const given = (value ?? {}) as Record<string, unknown>;
  if (typeof given.name !== "string" || typeof given.url !== "string") {
    return [];
  }
  const model: ServerModel = {
    name: given.name,
    url: new URL(given.url, location.href).href,
    bytes: typeof given.bytes === "number" ? given.bytes : 0,
  };
  for (const name of ["sha256", "family", "parameters", "format"] as const) {
    const text = given[name];
    if (typeof text === "string" && text !== "") {
      model[name] = text;
    }
  }
  return [model];
}

/** Hands a text to the server, which writes it to its log. */
export async function sendLog(tag: string, text: string): Promise<void> {
  const answer = await fetch("/api/log", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ tag, text }),
  });
  if (!answer.ok) {
    throw Object.assign(new Error(`the server answered ${answer.status}`), { code: "source.status" });
  }
}
