// @vitest-environment happy-dom
// The examples of the guide: the guide shows these very files, they compile against the package's types, and they work with an engine
// that repeats the question.

import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { afterAll, beforeEach, describe, expect, test, vi } from "vitest";

import { RullamaError, loadings, unloaded } from "./stub-engine.js";

const root = resolve(import.meta.dirname, "../..");
const read = (path: string) => readFileSync(join(root, path), "utf8");

const MEDIA_FILES = {
  "examples/media/index.html": "html",
  "examples/media/main.js": "js",
};

const FILES = {
  "examples/plain/index.html": "html",
  "examples/plain/main.js": "js",
  "examples/cdn/index.html": "html",
  "examples/react/Chat.tsx": "tsx",
  "examples/vue/Chat.vue": "vue",
  "examples/svelte/Chat.svelte": "svelte",
};

describe("the guide", () => {
  const guides = { embedding: FILES, media: MEDIA_FILES };
  const shown = Object.entries(guides).flatMap(([guide, files]) => Object.entries(files).map(([path, language]) => [guide, path, language] as const));

  test.each(shown)("%s.md shows %s as it is", (name, path, language) => {
    const guide = read(`../../docs/guide/${name}.md`);
    expect(guide).toContain(`\`\`\`${language}\n${read(path)}\`\`\`\n`);
    expect(guide).toContain(`packages/npm/${path}`);
  });
});

describe("the types", () => {
  const folder = mkdtempSync(join(root, "node_modules", ".examples-"));
  afterAll(() => rmSync(folder, { recursive: true }));

  test("accept every example", () => {
    expect(existsSync(join(root, "dist/index.d.ts")), "the package is not built: cargo xtask web").toBe(true);
    const script = (path: string) => /<script[^>]*>\n([\s\S]*?)<\/script>/.exec(read(path))?.[1] ?? "";
    const sources = {
      "plain.ts": `// @ts-nocheck\n${read("examples/plain/main.js")}`,
      "react.tsx": read("examples/react/Chat.tsx"),
      // Used by the template.
      "vue.ts": `${script("examples/vue/Chat.vue")}\nexport { ask, progress };`,
      "svelte.ts": `/// <reference types="svelte" />\n${script("examples/svelte/Chat.svelte")}\nexport { ask, progress };`,
      // A plain script finds its elements at run time, so only its use of the package is checked.
      "cdn.ts": `declare const answer: HTMLElement;\n${script("examples/cdn/index.html").replace(/"https:\S+index.js"/, '"rullama"').replace(/const answer = .*\n/, "").replace("catch (error)", "catch (error: any)")}`,
    };
    Object.entries(sources).forEach(([name, text]) => writeFileSync(join(folder, name), text));
    const options = {
      target: "ES2022", module: "ESNext", moduleResolution: "Bundler", jsx: "react-jsx", strict: true, noEmit: true, skipLibCheck: true,
      lib: ["ES2023", "DOM", "DOM.Iterable", "DOM.AsyncIterable"], types: [], paths: { rullama: [join(root, "dist/index.d.ts")] },
    };
    writeFileSync(join(folder, "tsconfig.json"), JSON.stringify({ compilerOptions: options, files: Object.keys(sources) }));
    let problems = "";
    try {
      execFileSync(process.execPath, [join(root, "node_modules/typescript/bin/tsc"), "-p", folder], { encoding: "utf8" });
    } catch (error) {
      problems = String((error as { stdout?: string }).stdout);
    }
    expect(problems).toBe("");
  });
});

/** What each framework needs to show its component; gives what removes it. */
const FRAMEWORKS: Record<string, (target: HTMLElement) => Promise<() => void>> = {
  async react(target) {
    const [{ createElement }, { createRoot }, { Chat }] = await Promise.all([import("react"), import("react-dom/client"), import("../../examples/react/Chat.tsx")]);
    const shown = createRoot(target);
    shown.render(createElement(Chat, { model: "model.gguf" }));
    return () => shown.unmount();
  },
  async vue(target) {
    const [{ createApp }, { default: Chat }] = await Promise.all([import("vue"), import("../../examples/vue/Chat.vue" as string)]);
    const app = createApp(Chat, { model: "model.gguf" });
    app.mount(target);
    return () => app.unmount();
  },
  async svelte(target) {
    const [{ mount, unmount }, { default: Chat }] = await Promise.all([import("svelte"), import("../../examples/svelte/Chat.svelte" as string)]);
    const component = mount(Chat, { target, props: { model: "model.gguf" } });
    return () => void unmount(component);
  },
};

beforeEach(() => {
  document.body.innerHTML = "";
  loadings.length = 0;
  unloaded.length = 0;
});

const page = () => document.body;
const eventually = (check: () => void) => vi.waitFor(check, { timeout: 5000, interval: 5 });
const loading = async () => {
  await eventually(() => expect(loadings.length).toBe(1));
  return loadings[0]!;
};

function submit(question: string) {
  const input = page().querySelector("input") as HTMLInputElement;
  input.value = question;
  input.dispatchEvent(new Event("input", { bubbles: true }));
  page().querySelector("form")!.dispatchEvent(new Event("submit", { bubbles: true, cancelable: true }));
}

describe.each(Object.keys(FRAMEWORKS))("the component for %s", (name) => {
  const show = () => FRAMEWORKS[name]!(page().appendChild(document.createElement("div")));

  test("shows the progress, answers, and frees the model when it is removed", async () => {
    const remove = await show();
    const { model, options, finish } = await loading();
    expect([model, options.store]).toEqual(["model.gguf", true]);
    options.onProgress({ overall: 0.25 });
    await eventually(() => expect(Number(page().querySelector("progress")?.getAttribute("value") ?? page().querySelector("progress")?.value)).toBe(0.25));
    finish();
    await eventually(() => expect(page().querySelector("form")).not.toBeNull());
    submit("Hello");
    await eventually(() => expect(page().querySelector("form p")?.textContent).toBe("You said: Hello"));
    remove();
    await eventually(() => expect(unloaded.length).toBe(1));
  });

  test("shows why a model cannot be loaded", async () => {
    const remove = await show();
    (await loading()).fail(new RullamaError("This isn't a GGUF file."));
    await eventually(() => expect(page().querySelector("[role=alert]")?.textContent).toBe("This isn't a GGUF file."));
    remove();
  });

  test("cancels a load when it is removed", async () => {
    const remove = await show();
    const { options } = await loading();
    remove();
    await eventually(() => expect(options.signal?.aborted).toBe(true));
  });
});

test("the plain page shows the progress and answers", async () => {
  page().innerHTML = read("examples/plain/index.html").replace(/<script.*<\/script>/, "");
  await import("../../examples/plain/main.js" as string);
  const { options, finish } = await loading();
  options.onProgress({ overall: 0.5 });
  expect((document.getElementById("progress") as HTMLProgressElement).value).toBe(0.5);
  finish();
  submit("Hello");
  await eventually(() => expect(document.getElementById("answer")?.textContent).toBe("You said: Hello"));
});

test("the page with images and sounds sends them with the question, and shows how far they are", async () => {
  page().innerHTML = read("examples/media/index.html").replace(/<script.*<\/script>/, "");
  await import("../../examples/media/main.js" as string);
  const { options, finish } = await loading();
  expect(options.projector).toBe("https://example.org/mmproj-gemma4-e2b.gguf");
  finish();
  const files = new DataTransfer();
  for (const [name, type] of [["notes.txt", "text/plain"], ["cat.jpg", "image/jpeg"], ["cat.wav", "audio/wav"]] as const) {
    files.items.add(new File(["content"], name, { type }));
  }
  page().querySelector<HTMLInputElement>("input[type=file]")!.files = files.files;
  submit("Who is this?");
  await eventually(() => expect(document.getElementById("answer")?.textContent).toBe("cat.jpg: cat.wav: You said: Who is this?"));
  expect((document.getElementById("progress") as HTMLProgressElement).value).toBe(0.75);
});
