import { Engine } from "rullama";

const [progress, form, answer] = ["progress", "form", "answer"].map((id) => document.getElementById(id));

const loading = Engine.load("https://example.org/gemma4-e2b.gguf", {
  // Only for models whose own file can't encode images and sounds.
  projector: "https://example.org/mmproj-gemma4-e2b.gguf",
  store: true,
  onProgress: ({ overall }) => (progress.value = overall),
});

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  const data = new FormData(form);
  const files = (type) => data.getAll("files").filter((file) => file.type.startsWith(type));
  const message = { role: "user", content: data.get("question"), images: files("image/"), audio: files("audio/") };
  answer.textContent = "";
  try {
    const engine = await loading;
    const onEncode = ({ index, count, fraction }) => (progress.value = (index + fraction) / count);
    for await (const delta of engine.chat([message], { think: false, onEncode })) {
      answer.append(delta.text);
    }
  } catch (error) {
    answer.textContent = error.message;
  }
});
