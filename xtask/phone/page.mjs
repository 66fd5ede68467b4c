// What runs in the app's page: one function for each thing to look at or to do. Each is sent there as text, so it uses nothing of
// this file but its arguments. What the app's elements are called stands here and nowhere else in the walk.

/** The button that sends; the one that stops has the same place. */
export const SEND = ".composer .send:not(.stop)";
export const LOAD_ADDRESS = 'form button[type="submit"]';

/** The button of a model in a list. @param {string} name @param {"Use" | "Resume"} action */
export function modelButton(name, action) {
  return `button[title=${JSON.stringify(`${action} ${name}`)}]`;
}

/**
 * Leaves a mark by which a page that was loaded anew is known, and keeps what the page says on its console, which most drivers do
 * not tell. Gives whether the mark was there already.
 */
export function mark() {
  if (globalThis.rullamaPhone) {
    return true;
  }
  const entries = [];
  globalThis.rullamaPhone = { entries };
  const note = (level, words) => {
    const text = words.map((word) => (typeof word === "string" ? word : word?.message ?? String(word))).join(" ");
    // Enough to see what went wrong, never enough to be what goes wrong.
    if (entries.length < 500) {
      entries.push({ level, message: text.slice(0, 2000), timestamp: Date.now() });
    }
  };
  for (const level of ["debug", "log", "info", "warn", "error"]) {
    const original = console[level];
    console[level] = (...words) => {
      note(level, words);
      original.apply(console, words);
    };
  }
  addEventListener("error", (event) => note("error", [event.message || "something could not be loaded"]));
  addEventListener("unhandledrejection", ({ reason }) => note("error", ["unhandled:", reason]));
  return false;
}

/** What the page has said on its console since it was marked; takes it away. */
export function takeConsole() {
  return globalThis.rullamaPhone?.entries.splice(0) ?? [];
}

/** The state of everything that the walk waits for. */
export function look() {
  const text = (element) => element?.textContent.trim().replace(/\s+/g, " ") ?? "";
  const problem = (root) => {
    const box = root?.querySelector(".error-box");
    return box ? { code: box.dataset.code, title: text(box.querySelector("strong")), text: text(box.querySelector("p")), detail: text(box.querySelector("code")) } : null;
  };
  const main = document.querySelector("#app main");
  const reply = [...document.querySelectorAll(".message.assistant")].at(-1);
  return {
    marked: globalThis.rullamaPhone !== undefined,
    /** Whether the app has started; `app` whether it is here at all. */
    app: document.getElementById("app") !== null,
    started: main !== null && main.childElementCount > 0,
    title: document.title,
    heading: text(main?.querySelector("h1")),
    webgpu: navigator.gpu !== undefined,
    /** empty, busy, ready or failed. */
    model: document.querySelector(".header-model")?.dataset.state ?? null,
    label: text(document.querySelector(".model-chip")),
    stages: [...document.querySelectorAll(".progress-panel .stage")].map((stage) => ({
      name: text(stage.firstElementChild),
      // One share for the whole, which every stage adds to.
      percent: text(document.querySelector(".progress-panel .stage-percent")),
      facts: text(stage.querySelector(".small")),
      done: stage.classList.contains("done"),
    })),
    /** Whether the page is looking at a model before it loads it. */
    checking: document.querySelector('.progress-panel[aria-label^="Checking"]') !== null,
    problem: problem(main),
    chat: document.querySelector(".composer-input") !== null,
    replies: document.querySelectorAll(".message.assistant").length,
    reply: reply
      ? {
          state: reply.dataset.state,
          text: reply.querySelector(".content")?.innerText.trim() ?? "",
          thought: reply.querySelector(".thought-text")?.textContent.trim() ?? "",
          facts: text(reply.querySelector(".facts")),
          problem: problem(reply),
        }
      : null,
  };
}

/** The models that can be chosen by name, when the page of models is shown; undefined before its lists are there. */
export function listModels() {
  if (!document.querySelector('form input[type="url"]')) {
    return null;
  }
  const names = (label) => [...document.querySelectorAll(`[aria-label="${label}"] li`)].map((row) => ({
    name: row.querySelector("strong").textContent,
    action: row.querySelector("button[title]:last-child")?.title.split(" ")[0] ?? "",
  }));
  // Its row says more than its name, which its button has alone.
  const demo = document.querySelector('[aria-label="Demo model"] li button[title^="Use "]');
  return {
    stored: names("Stored models"),
    server: names("Models on this server"),
    demo: demo ? [{ name: demo.title.slice("Use ".length), action: "Use" }] : [],
  };
}

export function showModels() {
  location.hash = "#/models";
}

export function showChat() {
  location.hash = "#/";
}

/** Writes into a field. By script, because drivers cannot type every character and an iPhone covers the page with its keyboard. */
export function write(selector, text) {
  const field = document.querySelector(selector);
  field.value = text;
  field.dispatchEvent(new Event("input", { bubbles: true }));
}

/** Presses a button that something else covers. */
export function press(selector) {
  document.querySelector(selector).click();
}

/** Changes settings where the app keeps them; it reads them when it starts. Returns whether anything changed. */
export function changeSettings(settings) {
  const before = JSON.parse(localStorage.getItem("rullama.settings") ?? "{}");
  localStorage.setItem("rullama.settings", JSON.stringify({ ...before, ...settings }));
  return Object.entries(settings).some(([name, value]) => before[name] !== value);
}

/** The graphics processor, as the browser calls it. */
export async function adapter() {
  const found = await navigator.gpu?.requestAdapter();
  if (!found) {
    return "";
  }
  const { vendor, architecture, device, description } = found.info ?? {};
  return [vendor, architecture, device, description].filter(Boolean).join(" ") || "unnamed";
}

/**
 * Lets a newer version of the app take over from the one that the service worker has kept, so that the walk sees what the server
 * has now. Gives whether there was one.
 */
export async function takeNewVersion() {
  const registration = await navigator.serviceWorker?.getRegistration();
  // Without a controller the page came from the server itself.
  if (!registration?.active || !navigator.serviceWorker.controller) {
    return false;
  }
  const sleep = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));
  await Promise.race([registration.update().catch(() => {}), sleep(10_000)]);
  for (let waited = 0; registration.installing && waited < 20_000; waited += 200) {
    await sleep(200);
  }
  if (!registration.waiting) {
    return false;
  }
  const taken = new Promise((resolve) => navigator.serviceWorker.addEventListener("controllerchange", resolve, { once: true }));
  registration.waiting.postMessage("take over");
  await Promise.race([taken, sleep(5_000)]);
  return true;
}

/** Removes all that the page's origin has stored, and gives what that was. */
export async function clean() {
  const removed = { files: 0, bytes: 0, databases: 0, caches: 0, workers: 0, settings: 0, problems: [] };
  const attempt = async (what, work) => {
    try {
      await work();
    } catch (error) {
      removed.problems.push(`${what}: ${error?.message ?? error}`);
    }
  };
  const weigh = async (folder) => {
    for await (const entry of folder.values()) {
      if (entry.kind === "directory") {
        await weigh(entry);
      } else {
        removed.files += 1;
        removed.bytes += (await entry.getFile()).size;
      }
    }
  };
  const remove = (name) =>
    new Promise((resolve, reject) => {
      const request = indexedDB.deleteDatabase(name);
      request.onsuccess = resolve;
      request.onerror = () => reject(request.error);
      request.onblocked = () => reject(new Error("another tab has it open"));
    });

  // First what would bring the rest back.
  await attempt("service worker", async () => {
    for (const registration of (await navigator.serviceWorker?.getRegistrations()) ?? []) {
      await registration.unregister();
      removed.workers += 1;
    }
  });
  await attempt("caches", async () => {
    for (const name of (await globalThis.caches?.keys()) ?? []) {
      await caches.delete(name);
      removed.caches += 1;
    }
  });
  await attempt("models", async () => {
    // Where the browser refuses its files, as some private windows do, there can be none.
    const root = await navigator.storage?.getDirectory?.().catch(() => undefined);
    if (root) {
      await weigh(root);
      const names = [];
      for await (const name of root.keys()) {
        names.push(name);
      }
      for (const name of names) {
        await root.removeEntry(name, { recursive: true });
      }
    }
  });
  await attempt("databases", async () => {
    // Browsers that cannot list them have at most the app's own.
    const all = (await indexedDB.databases?.()) ?? [{ name: "rullama" }];
    for (const { name } of all) {
      await remove(name);
      removed.databases += 1;
    }
  });
  await attempt("settings", async () => {
    removed.settings = localStorage.length;
    localStorage.clear();
    sessionStorage.clear();
  });
  return removed;
}
