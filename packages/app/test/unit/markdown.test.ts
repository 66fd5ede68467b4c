import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { safeAddress } from "../../src/markdown/address";
import { highlight, mayHighlight } from "../../src/markdown/highlight";
import { MarkdownDocument } from "../../src/markdown/document";
import { html, Page } from "./markdown-page";

const link = (href: string, text: string) => `<a href="${href}" target="_blank" rel="noopener noreferrer nofollow">${text}</a>`;

describe("what models write", () => {
  test.each([
    ["# A #\n### B", "<h3>A</h3><h5>B</h5>"],
    ["3) a\n4) b", '<ol start="3"><li>a</li><li>b</li></ol>'],
    ["**a** *b* ~~c~~ ~d~", "<p><strong>a</strong> <em>b</em> <del>c</del> ~d~</p>"],
    ["see https://example.org/a.", `<p>see ${link("https://example.org/a", "https://example.org/a")}.</p>`],
    ["![a picture](https://example.org/p.png)", `<p>${link("https://example.org/p.png", "a picture")}</p>`],
    ["[no](relative) [no](#here) [a][b]", "<p>no no [a][b]</p>"],
    ["[a][b]\n\n[b]: https://example.org/", `<p>${link("https://example.org/", "a")}</p>`],
  ])("%j", (text, expected) => {
    expect(html(text)).toBe(expected);
  });

  test("tables", () => {
    const written = html("| a | b |\n|:--|--:|\n| 1<br>2 | 3 |\n| **4** |");
    expect(written).toContain('<th scope="col" class="align-left">a</th><th scope="col" class="align-right">b</th>');
    expect(written).toContain('<td class="align-left">1<br>2</td><td class="align-right">3</td>');
    expect(written).toContain('<td class="align-left"><strong>4</strong></td><td colSpan="1"></td>');
  });

  test("tasks", () => {
    const written = html("- [x] yes\n- [ ] no");
    expect(written).toContain('<input type="checkbox" disabled="" aria-label="done" checked="">yes');
    expect(written).toContain('aria-label="not done">no');
  });

  test("code in a list, and a fence that is not closed", () => {
    expect(html("1. a\n   ```\n   x\n     y\n   ```")).toContain("<code>x\n  y</code>");
    expect(html("~~~\na\n\nb")).toContain("<code>a\n\nb</code>");
  });
});

describe("maths", () => {
  const tex = (source: string, display = false) =>
    `<span class="maths${display ? " display" : ""}"${display ? ' tabIndex="0"' : ""}><span></span><code class="tex">${source}</code></span>`;

  test.each([
    ["a $x\\,y$ b", `<p>a ${tex("$x\\,y$")} b</p>`],
    ["\\(a\\) and \\[b\\] c", `<p>${tex("\\(a\\)")} and ${tex("\\[b\\]", true)} c</p>`],
    ["$$\na\n- b\n$$", tex("$$\na\n- b\n$$", true)],
    ["text\n\\[\na\n+ b\n\\]\nmore", `<p>text</p>${tex("\\[\na\n+ b\n\\]", true)}<p>more</p>`],
    ["> $$\n> x\n> - y\n> $$", `<blockquote>${tex("$$\nx\n- y\n$$", true)}</blockquote>`],
    ["1. a\n   $$\n   x\n   $$\n2. b", `<ol><li>a${tex("$$\nx\n$$", true)}</li><li>b</li></ol>`],
    ["$5 and $6", "<p>$5 and $6</p>"],
    ["$20,000 and $30,000, US$5 or US$ 6", "<p>$20,000 and $30,000, US$5 or US$ 6</p>"],
    ["`$x$` \\$x\\$", "<p><code>$x$</code> $x$</p>"],
    ["\\[not a link](/foo)\nmore", "<p>[not a link](/foo)\nmore</p>"],
  ])("%j", (text, expected) => {
    expect(html(text)).toBe(expected);
  });
});

describe("hostile text", () => {
  test.each([
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "<!-- <b> -->\n\n<div onclick=x>\n\n<b>a</b>",
    "[a](javascript:alert(1))",
    "[a](JaVaScRiPt:alert(1))",
    "[a](java\tscript:alert(1))",
    "[a](<javascript:alert(1)>)",
    "[a](data:text/html,<script>alert(1)</script>)",
    "[a](vbscript:x) [b](file:///etc/passwd) [c](blob:https://x/y)",
    "<javascript:alert(1)>",
    "![x](javascript:alert(1))",
    "[a]\n\n[a]: javascript:alert(1)",
    "`<b>` **<i>** | <u>\n|-|\n|<s>|",
    "```html\"><script>\n<script>\n```",
    "[\u0000](\u0001javascript:alert(1))",
    "$\\href{javascript:alert(1)}{x}$",
  ])("%j makes only harmless nodes", (text) => {
    const written = html(text);
    expect(written).not.toMatch(/<(script|img|iframe|object|i|u|s|b|div)[\s>](?!class="table-frame")/);
    expect(written).not.toMatch(/href="(?!https?:|mailto:)/);
    expect(written).not.toMatch(/ on\w+="/);
  });

  test("addresses", () => {
    expect(safeAddress("https://example.org")).toBe("https://example.org/");
    expect(safeAddress("mailto:a@example.org")).toBe("mailto:a@example.org");
    for (const text of ["javascript:1", " javascript:1", "\njavascript:1", "//example.org", "/x", "x", "", "data:,x", "ftp://x"]) {
      expect(safeAddress(text), text).toBeUndefined();
    }
  });

  test.each([">", "> ", "- ", "1. ", "> - ", "[", "![", "*a **b ", "~~a *b ", "\\[", "$$", "|"])("100,000 characters of %j are shown", (mark) => {
    expect(html(mark.repeat(100_000 / mark.length) + "end")).toContain("end");
  });
});

describe("long blocks", () => {
  test("a paragraph, a list, a table and code stay one block", () => {
    expect(html("word ".repeat(4000)).match(/<p>/g)).toHaveLength(1);
    expect(html("some words\n".repeat(2000)).match(/<p>/g)).toHaveLength(1);
    const list = html("- item **x**\n".repeat(2000));
    expect([list.match(/<ul>/g)?.length, list.match(/<li>/g)?.length]).toEqual([1, 2000]);
    const table = html(`|a|b|\n|-|:-:|\n${"|c|d|\n".repeat(2000)}`);
    expect([table.match(/<table>/g)?.length, table.match(/<tr>/g)?.length, table.match(/class="align-center"/g)?.length]).toEqual([1, 2001, 2001]);
    const code = html(`\`\`\`\n${"let a;\n".repeat(2000)}\`\`\``);
    expect(code.match(/<pre/g)).toHaveLength(1);
    expect(code).toContain(`<code>${"let a;\n".repeat(2000).trimEnd()}</code>`);
  });

  test("no character is lost in words that are longer than a piece", () => {
    expect(html("abcde".repeat(4000))).toBe(`<p>${"abcde".repeat(4000)}</p>`);
  });
});

describe("text that grows", () => {
  const TEXT = [
    "# Title\n\nA **bold** word, $x$ and\nmore.\n\n- one\n\n\n  more\n- two\n\n```js\nlet x;\n\n```\n\n| a |\n|---|\n| 1 |\n\nend",
    "in\n#hashtag\n# Title\ntext\n> quote\nlazy\n> more\n---\n***bold***\r\nend\r\nof it",
    "1. a\n\n   ```\n   code\n\n   ```\n2. b\n\n~~~\nopen\n\n~~~\n\n$$\na\n- b\n$$\n\n3) c\n\n\n4) d",
  ].join("\n\n");

  test("the end result is that of the whole text, and elements of finished blocks stay", () => {
    const text = `${TEXT}\n\n`.repeat(5);
    const document = new MarkdownDocument();
    const page = new Page();
    const first = () => page.element.childNodes[0];
    page.show(text.slice(0, 40));
    const title = first();
    for (let length = 41; length <= text.length; length += 7) {
      document.update(text.slice(0, length), true);
      page.show(text.slice(0, length));
      expect(first()).toBe(title);
    }
    expect(page.show(text)).toBe(html(text));
    expect(page.show("other")).toBe("<p>other</p>");
  });

  test("every beginning of a text is shown as it would be alone", () => {
    const page = new Page();
    for (let length = 1; length <= TEXT.length; length++) {
      expect(page.show(TEXT.slice(0, length))).toBe(html(TEXT.slice(0, length)));
    }
  });

  test("nodes of finished blocks are the same objects", () => {
    const document = new MarkdownDocument();
    const text = "A paragraph.\n\n".repeat(500);
    const before = document.update(text, true);
    const after = document.update(`${text}more`, true);
    expect(before.length).toBeGreaterThan(5);
    expect(after.slice(0, -2)).toEqual(before.slice(0, after.length - 2));
    after.slice(0, -2).forEach((node, index) => expect(node).toBe(before[index]));
  });
});

describe("highlighting", () => {
  test("code of a known language gets classes; long code and other languages stay plain", async () => {
    expect(JSON.stringify(await highlight("js", "let a = 1;"))).toContain("hljs-keyword");
    expect(await highlight("no-such-language", "let")).toBeUndefined();
    expect(mayHighlight("js", "a\n".repeat(10_001))).toBe(false);
    expect(mayHighlight("js", "a".repeat(1001))).toBe(false);
  });

  test("colours can be read on the background of code in both themes", () => {
    const sheet = (name: string) => readFileSync(new URL(`../../src/style/${name}.css`, import.meta.url), "utf8");
    const values = (text: string, name: string) => [...text.matchAll(new RegExp(`${name}: (#[0-9a-f]{6});`, "g"))].map(([, colour]) => colour as string);
    const grounds = values(sheet("tokens"), "--sunken");
    const names = new Set([...sheet("markdown").matchAll(/(--code-[a-z]+):/g)].map(([, name]) => name as string));
    expect([grounds.length, names.size]).toEqual([3, 6]);
    for (const name of names) {
      const colours = values(sheet("markdown"), name);
      expect(colours).toHaveLength(3);
      colours.forEach((colour, theme) => expect(contrast(colour, grounds[theme] as string), name).toBeGreaterThan(4.5));
    }
  });
});

/** The contrast of two colours by WCAG. */
function contrast(one: string, other: string): number {
  const [dark, light] = [luminance(one), luminance(other)].sort((a, b) => a - b) as [number, number];
  return (light + 0.05) / (dark + 0.05);
}

function luminance(colour: string): number {
  const [red, green, blue] = [1, 3, 5].map((at) => {
    const part = Number.parseInt(colour.slice(at, at + 2), 16) / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  }) as [number, number, number];
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}
