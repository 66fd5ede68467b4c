// The Device page: facts, self-test, benchmark, its result as a file and to the server.

import { readFile } from "node:fs/promises";
import { PATIENCE } from "./app.mjs";
import { assert, equal } from "./checks.mjs";

export async function device(checks, app, server) {
  const { page } = app;
  await checks.check("the Device page shows what the browser and the engine say", async () => {
    await app.go("#/device");
    const text = await page.locator("section.page").innerText();
    for (const word of ["Largest buffer", "Half precision", "The self-test passed", "gemma4", "512 of"]) {
      assert(text.includes(word), `"${word}" is missing in ${text}`);
    }
    await app.shot("device");
  });

  await checks.check("the benchmark draws a curve over depth, with a table and a file", async () => {
    await page.click("text=Run the benchmark");
    await page.waitForSelector("text=Save as JSON", { timeout: PATIENCE });
    equal(await page.locator(".plot .point").count(), 3, "points");
    equal(await page.locator(".results tbody tr").count(), 3, "rows");
    await page.locator(".plot").scrollIntoViewIfNeeded();
    await app.shot("device-benchmark");
    const saving = page.waitForEvent("download");
    await page.click("text=Save as JSON");
    const result = JSON.parse(await readFile(await (await saving).path()));
    equal([result.format, result.points.map(({ depth }) => depth)], ["rullama-benchmark", [0, 239, 478]], "file");
    assert(result.points.every(({ decode }) => decode.median > 0 && decode.count === 3), JSON.stringify(result.points));
    assert(result.points[1].prompt > 0, "no speed of reading");
  });

  await checks.check("the result goes to the server only after a yes", async () => {
    equal(await page.locator("text=Send to this server").count(), server.behaviour.api ? 1 : 0, "button");
    await page.click("text=Send to this server");
    await page.click("dialog >> text=Cancel");
    equal(server.logs.length, 0, "logs after a no");
    await page.click("text=Send to this server");
    await page.click("dialog >> text=Send >> nth=-1");
    await page.waitForSelector("text=Sent. Thank you.");
    equal([server.logs.length, server.logs[0].tag, JSON.parse(server.logs[0].text).format], [1, "benchmark", "rullama-benchmark"], "log");
  });
}
