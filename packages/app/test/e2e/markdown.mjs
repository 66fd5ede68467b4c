// Markdown in a real page: an imported conversation with everything in it, friendly and not.

import { assert, equal } from "../../../../xtask/browser/assert.mjs";

const ANSWER = `# Why the sky is blue

Sunlight is scattered by air, and **short waves** more than *long* ones. The strength goes with \`1/λ⁴\`.

1. Light enters the air.
2. Blue is scattered:
   - by nitrogen,
   - by oxygen.

| colour | wavelength |
|:-------|-----------:|
| blue   | 450 nm     |
| red    | 700 nm     |

\`\`\`python
def strength(wavelength):
    return 1 / wavelength ** 4
\`\`\`

> Rayleigh found this in 1871.

See [an article](https://example.org/rayleigh). <script>window.hacked = 1</script> <img src="https://example.org/x.png" onerror="window.hacked = 2"> [click](javascript:window.hacked=3) ![picture](https://example.org/p.png)`;

export async function markdown(checks, app) {
  const { page } = app;
  await checks.check("an answer in Markdown is nodes, and nothing in it runs or is fetched", async () => {
    const time = Date.now() + 1000;
    const message = (id, parent, role, content) => ({ id, parent, role, content, createdAt: time, state: "complete" });
    const answer = {
      ...message("m2", "m1", "assistant", ANSWER),
      thought: "The user asks about the sky.\nRayleigh scattering, then.",
      speed: { promptTokens: 20, reusedTokens: 0, generatedTokens: 240, promptMs: 310, generateMs: 6100 },
    };
    const conversation = { id: "markdown", title: "Why is the sky blue?", named: true, system: "", createdAt: time, updatedAt: time, shown: {} };
    const file = { format: "rullama-conversations", version: 1, conversations: [{ ...conversation, messages: [message("m1", null, "user", "Why is the sky blue?"), answer] }] };
    await page.chooseFile('[aria-label="Import chats"]', { name: "x.json", content: Buffer.from(JSON.stringify(file)) });
    await page.click(".conversation-title >> text=Why is the sky blue?");
    await page.waitForSelector(".markdown table");
    equal(await page.evaluate(() => window.hacked), undefined, "hacked");
    equal(await page.locator(".markdown img, .markdown script").count(), 0, "foreign elements");
    const links = await page.$$eval(".markdown a", (all) => all.map(({ href, rel }) => [href, rel]));
    // The address in the tag that is shown as text can be followed like any other; nothing follows it by itself.
    const expected = ["rayleigh", "x.png", "p.png"].map((name) => [`https://example.org/${name}`, "noopener noreferrer nofollow"]);
    equal(links, expected, "links");
    equal(await page.locator(".markdown ol > li > ul > li").count(), 2, "nested items");
    equal(await page.locator("details.thought[open]").count(), 0, "open thoughts");
  });

  await checks.check("code is copied by its button", async () => {
    // It says so for a moment only, which is not to be missed.
    await Promise.all([page.waitForSelector(".copy >> text=Copied"), page.click(".code-block .copy")]);
    const text = await page.evaluate(() => navigator.clipboard.readText());
    assert(text === "def strength(wavelength):\n    return 1 / wavelength ** 4", text);
  });
}
