// The built app in real browsers, served by `rullama serve` and by an ordinary server.
//
// Models run on the CPU here, as on every machine without a GPU: the browsers only emulate one, which the app leaves alone. A few tests
// ask for that GPU, where Chromium takes half a minute to load a model. Firefox walks every way to a model. Views in both colours and
// on a phone are looked at in Chromium, which can emulate them.

import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { lineTo } from "../../../../xtask/browser/line.mjs";
import { everyView, keyboard, touch } from "./access.mjs";
import { App, SETTINGS } from "./app.mjs";
import { chatting, conversations, transfer } from "./chat.mjs";
import { demoAnswers, demoInterrupted, demoOffline, demoViews, demoWithoutStore, firstStart } from "./demo.mjs";
import { device } from "./device.mjs";
import { markdown } from "./markdown.mjs";
import { attaching, sending, textOnly } from "./media.mjs";
import { byAddress, byFile, equalTroubles, fromServer, pulledAnew, reports, saved, tooLarge } from "./models.mjs";
import { onGpu } from "./gpu.mjs";
import { cached, lostDevice, newVersion, offline, silentServer, watchReplies, withoutWebGpu } from "./offline.mjs";
import { PROGRAM, serveRullama } from "./rullama.mjs";
import { serve } from "./server.mjs";

const CHROMIUM = ["chromium"];
const FIREFOX = ["firefox"];

/** For the tests that mean the GPU: without this the app would leave one alone that is emulated. */
const GPU_SETTINGS = { ...SETTINGS, backend: "gpu" };

/** `rullama serve`, a line to it that can be cut, and an ordinary server whose behaviour tests change. */
export async function setUp() {
  if (!existsSync(fileURLToPath(new URL("../../dist/index.html", import.meta.url)))) {
    throw new Error("the app is not built: npm run build --prefix packages/app");
  }
  const server = await serve();
  const rullama = await serveRullama(PROGRAM);
  const line = await lineTo(rullama.origin);
  const close = async () => {
    server.close();
    await line.close();
    await rullama.close();
  };
  return { server, rullama, line, close };
}

export const tests = [
  {
    title: "the app without WebGPU",
    webgpu: false,
    quick: true,
    run: (t) => withoutWebGpu(t, t.browser, t.shared.rullama.origin),
  },
  {
    title: "the first start",
    async run(t) {
      const { line } = t.shared;
      const app = await firstStart(t, t.browser, line.origin);
      if (t.browser.name === "chromium") {
        await demoViews(t, app);
      } else {
        await demoAnswers(t, app);
        await demoOffline(t, app, line, { answers: true });
      }
      await equalTroubles(t, app, "at first start");
      await app.close();
    },
  },
  {
    title: "the demo model in a browser that keeps no files",
    browsers: FIREFOX,
    run: (t) => demoWithoutStore(t, t.browser, t.shared.server),
  },
  {
    title: "the demo model over a connection that breaks",
    browsers: FIREFOX,
    run: (t) => demoInterrupted(t, t.browser, t.shared.server),
  },
  {
    title: "a chat",
    async run(t) {
      const { line } = t.shared;
      const isChromium = t.browser.name === "chromium";
      const app = await App.open(t.browser, line.origin, { before: watchReplies });
      await fromServer(t, app);
      await textOnly(t, app);
      await chatting(t, app);
      await conversations(t, app);
      await transfer(t, app);
      await cached(t, app);
      await markdown(t, app);
      if (isChromium) {
        await everyView(t, app);
        await keyboard(t, app);
        await equalTroubles(t, app, "in the main tab");
      } else {
        await offline(t, app, line);
        await equalTroubles(t, app, "in the main tab");
        await lostDevice(t, app);
      }
      await app.close();
    },
  },
  {
    title: "images and sounds",
    async run(t) {
      const app = await attaching(t, t.browser, t.shared.rullama.origin);
      await sending(t, app);
      await equalTroubles(t, app, "with images and sounds");
      await app.close();
    },
  },
  {
    title: "a model on the GPU",
    gpu: [],
    async run(t) {
      const { rullama } = t.shared;
      const app = await App.open(t.browser, rullama.origin, { settings: GPU_SETTINGS, before: watchReplies });
      await fromServer(t, app);
      await onGpu(t, app);
      if (t.browser.name === "firefox") {
        await device(t, app, rullama);
      }
      await app.close();
    },
  },
  {
    title: "models of the server",
    browsers: FIREFOX,
    async run(t) {
      await pulledAnew(t, t.browser, t.shared.rullama);
      await reports(t, t.browser, t.shared.rullama);
    },
  },
  {
    title: "models from files",
    browsers: FIREFOX,
    async run(t) {
      await tooLarge(t, t.browser, t.shared.rullama.origin);
      await byFile(t, t.browser, t.shared.rullama.origin);
    },
  },
  {
    title: "models by address, at an ordinary server",
    browsers: FIREFOX,
    async run(t) {
      const app = await App.open(t.browser, t.shared.server.origin);
      await byAddress(t, app, t.shared.server);
      await saved(t, app);
      await equalTroubles(t, app, "at an ordinary server");
      await app.close();
    },
  },
  {
    title: "fingers",
    // A coarse pointer is emulated there only.
    browsers: CHROMIUM,
    run: (t) => touch(t, t.browser, t.shared.rullama.origin),
  },
  {
    title: "a server that says nothing, or has a newer app",
    async run(t) {
      await silentServer(t, t.browser, t.shared.server);
      await newVersion(t, t.browser, t.shared.server);
    },
  },
];
