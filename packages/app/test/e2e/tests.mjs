// The built app in real browsers, served by `rullama serve` and by an ordinary server.
//
// Chromium takes half a minute to load a model here, Firefox a few seconds (see packages/npm/test/browser/engine.mjs). So Firefox
// walks every way to a model; Chromium loads one at the first start, one for the chat, and once more after its GPU process has died.
// Views in both colours and on a phone are looked at in Chromium, which can emulate them.

import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { lineTo } from "../../../../xtask/browser/line.mjs";
import { everyView, keyboard, touch } from "./access.mjs";
import { App } from "./app.mjs";
import { chatting, conversations, transfer } from "./chat.mjs";
import { demoAnswers, demoInterrupted, demoOffline, demoViews, demoWithoutStore, firstStart } from "./demo.mjs";
import { device } from "./device.mjs";
import { markdown } from "./markdown.mjs";
import { byAddress, byFile, equalTroubles, fromServer, pulledAnew, reports, saved, tooLarge } from "./models.mjs";
import { cached, lostDevice, lostProcess, newVersion, offline, silentServer, watchReplies, withoutWebGpu } from "./offline.mjs";
import { PROGRAM, serveRullama } from "./rullama.mjs";
import { serve } from "./server.mjs";

const CHROMIUM = ["chromium"];
const FIREFOX = ["firefox"];

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
    quick: true,
    run: (t) => withoutWebGpu(t, t.browser, t.shared.rullama.origin),
  },
  {
    title: "the first start",
    gpu: [],
    async run(t) {
      const { line } = t.shared;
      const isChromium = t.browser.name === "chromium";
      const app = await firstStart(t, t.browser, line.origin, { brief: isChromium });
      if (isChromium) {
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
    gpu: [],
    run: (t) => demoWithoutStore(t, t.browser, t.shared.server),
  },
  {
    title: "the demo model over a connection that breaks",
    browsers: FIREFOX,
    gpu: [],
    run: (t) => demoInterrupted(t, t.browser, t.shared.server),
  },
  {
    title: "a chat",
    gpu: [],
    async run(t) {
      const { line, rullama } = t.shared;
      const isChromium = t.browser.name === "chromium";
      const app = await App.open(t.browser, line.origin, { before: watchReplies });
      await fromServer(t, app);
      await chatting(t, app);
      await conversations(t, app);
      await transfer(t, app);
      await cached(t, app);
      await markdown(t, app);
      if (isChromium) {
        await everyView(t, app);
        await keyboard(t, app);
        await equalTroubles(t, app, "in the main tab");
        await lostProcess(t, app, t.browser);
      } else {
        await offline(t, app, line);
        await equalTroubles(t, app, "in the main tab");
        await lostDevice(t, app);
        await t.check("the model is there for the benchmark", () => app.ready());
        await device(t, app, rullama);
      }
      await app.close();
    },
  },
  {
    title: "models of the server",
    browsers: FIREFOX,
    gpu: [],
    async run(t) {
      await pulledAnew(t, t.browser, t.shared.rullama);
      await reports(t, t.browser, t.shared.rullama);
    },
  },
  {
    title: "models from files",
    browsers: FIREFOX,
    gpu: [],
    async run(t) {
      await tooLarge(t, t.browser, t.shared.rullama.origin);
      await byFile(t, t.browser, t.shared.rullama.origin);
    },
  },
  {
    title: "models by address, at an ordinary server",
    browsers: FIREFOX,
    gpu: [],
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
    gpu: [],
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
