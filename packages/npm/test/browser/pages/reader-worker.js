// A worker that opens stored files as an engine's would, and keeps them open until told otherwise.

import { ModelStore } from "/dist/store/index.js";

const store = ModelStore.open();
let source;

addEventListener("message", async ({ data }) => {
  try {
    if (data.open) source = await (await store).source(data.open);
    if (data.close) source.close();
    const bytes = data.read ? await source.read(...data.read) : undefined;
    postMessage({ bytes: bytes && [...bytes], shared: "mode" in FileSystemSyncAccessHandle.prototype });
  } catch (error) {
    postMessage({ code: error.code ?? String(error) });
  }
});
