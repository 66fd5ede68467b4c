import { Engine } from "rullama";

const [progress, form, answer] = ["progress", "form", "answer"].map((id) => document.getElementById(id));

// Downloads the model once and keeps it in the browser.
const loading = Engine.load("https://example.org/gemma4-e2b.gguf", {
  store: true,
  onProgress: ({ overall }) => (progress.value = overall),
});

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  const question = new FormData(form).get("question");
  answer.textContent = "";
  try {
    const engine = await loading;
    for await (const delta of engine.chat([{ role: "user", content: question }], { think: false })) {
      answer.append(delta.text);
    }
  } catch (error) {
    answer.textContent = error.message;
  }
});
