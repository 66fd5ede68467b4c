import { expect, test, vi } from "vitest";
import { MarkdownStream } from "../../src/markdown/stream";
import { fakeDocument } from "./fake-document";

/** Characters that were parsed. */
let parsed = 0;

vi.mock("../../src/markdown/parse", async (original) => {
  const real = await original<typeof import("../../src/markdown/parse")>();
  const parse = (text: string) => {
    parsed += text.length;
    return real.parse(text);
  };
  return { ...real, parse };
});

test("a long reply costs no more for each word than a short one", () => {
  const cost = (paragraphs: number) => {
    parsed = 0;
    const stream = new MarkdownStream(fakeDocument.createElement("div"), { document: fakeDocument, onCopy: () => {} });
    const words = "A paragraph of some *words*.\n\n- with\n- a list\n\n".repeat(paragraphs).split(" ");
    let text = "";
    for (const word of words) {
      text += `${word} `;
      stream.update(text);
    }
    return parsed / words.length;
  };
  expect(cost(200) / cost(100)).toBeLessThan(1.1);
});
