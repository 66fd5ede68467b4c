// The Device page: facts, self-test, benchmark, its result as a file and to the server.

import { readFile } from "node:fs/promises";
import { assert, equal, eventually } from "../../../../xtask/browser/assert.mjs";

export async function device(checks, app, rullama) {
  const { page } = app;
  await checks.check("the Device page shows what the browser and the engine say", async () => {
    await app.go("#/device");
    await eventually(async () => {
      const text = await page.locator("section.page").innerText();
      for (const word of ["The self-test passed", "512 of", "GPU memory"]) {
        assert(text.includes(word), `"${word}" is missing in ${text}`);
      }
    });
    // The verdict comes first; details are folded.
    assert(/Your GPU can run models up to about|only emulates one/.test(await page.locator(".device-verdict h2").innerText()), "no verdict");
    assert(!(await page.locator("section.page").innerText()).includes("Largest buffer"), "details are not folded");
    await app.shot("device");
    await page.click("summary >> text=GPU details");
    await page.click("summary >> text=Model details");
    const text = await page.locator("section.page").innerText();
    for (const word of ["Largest buffer", "Half precision", "Threads per workgroup", "gemma4"]) {
      assert(text.includes(word), `"${word}" is missing in ${text}`);
    }
  });

  await checks.check("the self-test runs by itself, and tells how fast memory is read", async () => {
    await page.click("text=Run the self-test");
    await page.waitForSelector("text=tests passed", { timeout: app.patience });
    const text = await page.locator(".card >> has=Memory bandwidth").innerText();
    assert(/All \d\d tests passed/.test(text) && /Memory bandwidth: [\d.]+ .B\/s/.test(text), text);
    await app.shot("device-self-test");
  });

  await checks.check("the kernels of the model are shown", async () => {
    await page.click("summary >> text=Kernels");
    await page.waitForSelector("li >> has=generation: >> code");
    assert((await page.locator("li >> has=prompt of >> code").count()) > 0, "no kernels of prompts");
  });

  await checks.check("the benchmark draws a curve over depth, with a table and a file", async () => {
    await page.click("text=Run the benchmark");
    await page.waitForSelector("text=Save as JSON", { timeout: app.patience });
    equal(await page.locator(".plot .point").count(), 3, "points");
    equal(await page.locator(".results tbody tr").count(), 3, "rows");
    await page.locator(".plot").scrollIntoView();
    await app.shot("device-benchmark");
    const result = JSON.parse(await page.download("text=Save as JSON"));
    equal([result.format, result.points.map(({ depth }) => depth)], ["rullama-benchmark", [0, 239, 478]], "file");
    assert(result.points.every(({ decode }) => decode.median > 0 && decode.count === 3), JSON.stringify(result.points));
    assert(result.points[1].prompt > 0, "no speed of reading");
  });

  await checks.check("the result goes to the server only after a yes", async () => {
    await page.click("text=Send to this server");
    await page.click("dialog >> text=Cancel");
    await app.dialogClosed();
    equal(await rullama.logs("benchmark"), [], "logs after a no");
    await page.click("text=Send to this server");
    await page.click("dialog >> text=Send >> nth=-1");
    await page.waitForSelector("text=Sent. Thank you.");
    const logs = await rullama.logs("benchmark");
    const { format, points } = JSON.parse(logs[0].text);
    equal([logs.length, format, points.length], [1, "rullama-benchmark", 3], "log");
  });
}
