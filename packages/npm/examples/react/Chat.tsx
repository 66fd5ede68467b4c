import { useEffect, useState, type FormEvent } from "react";
import { Engine, type RullamaError } from "rullama";

export function Chat({ model }: { model: string }) {
  const [engine, setEngine] = useState<Engine>();
  const [progress, setProgress] = useState(0);
  const [answer, setAnswer] = useState("");
  const [error, setError] = useState("");

  useEffect(() => {
    const controller = new AbortController();
    const loading = Engine.load(model, {
      store: true,
      signal: controller.signal,
      onProgress: ({ overall }) => setProgress(overall),
    });
    loading.then(setEngine, (error: RullamaError) => error.code === "cancelled" || setError(error.message));
    return () => {
      controller.abort();
      // If the model was already loaded, this frees its memory.
      loading.then((engine) => engine.unload(), () => {});
    };
  }, [model]);

  async function ask(event: FormEvent<HTMLFormElement>) {
    event.preventDefault();
    if (!engine) return;
    const question = String(new FormData(event.currentTarget).get("question"));
    setAnswer("");
    try {
      for await (const delta of engine.chat([{ role: "user", content: question }], { think: false })) {
        setAnswer((answer) => answer + delta.text);
      }
    } catch (error) {
      setError((error as RullamaError).message);
    }
  }

  if (error) return <p role="alert">{error}</p>;
  if (!engine) return <progress value={progress} />;
  return (
    <form onSubmit={ask}>
      <input name="question" required />
      <button>Ask</button>
      <p>{answer}</p>
    </form>
  );
}
