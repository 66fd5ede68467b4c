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

The strength is \\(I \\propto \\lambda^{-4}\\,\\text{W}\\):

$$
\\frac{I_1}{I_2} = \\left(\\frac{\\lambda_2}{\\lambda_1}\\right)^4
$$

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
    // The address in the tag, which is shown as text, is a link that the user may follow.
    const expected = ["rayleigh", "x.png", "p.png"].map((name) => [`https://example.org/${name}`, "noopener noreferrer nofollow"]);
    equal(links, expected, "links");
    equal(await page.locator(".markdown ol > li > ul > li").count(), 2, "nested items");
    equal(await page.locator("details.thought[open]").count(), 0, "open thoughts");
  });

  await checks.check("formulas are drawn with KaTeX's own fonts, and code is highlighted", async () => {
    await page.waitForSelector(".markdown .maths.display .katex-display");
    await page.waitForSelector(".code-block .hljs-keyword");
    equal(await page.locator(".markdown .maths .katex").count(), 2, "formulas");
    equal(await page.locator(".markdown .tex").count(), 0, "formulas shown as TeX");
    const fonts = await page.evaluate(async () => {
      await document.fonts.ready;
      return [...document.fonts].filter(({ family, status }) => family.includes("KaTeX") && status === "loaded").length;
    });
    assert(fonts > 0, "the fonts of KaTeX are not loaded");
  });

  await checks.check("code is copied by its button", async () => {
    // The button says so for two seconds only.
    await Promise.all([page.waitForSelector(".copy >> text=Copied"), page.click(".code-block .copy")]);
    const text = await page.evaluate(() => navigator.clipboard.readText());
    assert(text === "def strength(wavelength):\n    return 1 / wavelength ** 4", text);
  });
}
