// First, so that V8 counts the blocks of what follows.
import { countWork } from "./work";
import { describe, expect, test } from "vitest";
import { safeAddress } from "../../src/markdown/address";
import { parse } from "../../src/markdown/parse";
import { renderBlock } from "../../src/markdown/render";
import { MarkdownStream } from "../../src/markdown/stream";
import { fakeDocument } from "./fake-document";

const options = { document: fakeDocument, onCopy: () => {} };

/** The text as the page would have it. */
function html(text: string): string {
  return parse(text)
    .map(({ block }) => String(renderBlock(block, options)))
    .join("");
}

/** Twice the text is twice the work where it grows evenly, four times where it grows with the square. */
const TOO_MUCH = 3;

/** Patterns that may be given lines of any length. None has two quantifiers that could share characters, so none backtracks far. */
const LINEAR_PATTERNS = new Set([
  "\\r\\n?",
  "`+",
  "\\s+",
  "^ {0,3}(#{1,6})(?:[ \\t]+([^ \\t].*)?)?$",
  "^ {0,3}(?:(?:\\*[ \\t]*){3,}|(?:-[ \\t]*){3,}|(?:_[ \\t]*){3,})$",
  "^\\s*(`{3,}|~{3,}(?!~))([^`]*)$",
  "^ {0,3}> ?(.*)$",
  "^([ \\t]*)([-*+]|\\d{1,9}[.)])(?:([ \\t]+)([^ \\t].*)?)?$",
  "^\\[([ xX])\\][ \\t]+([^ \\t].*)?$",
  "^:?-+:?$",
  "^\\|",
]);

const SOURCES = ["/src/markdown/", "/unit/markdown.test.ts"];

/** How much more work twice the text is. */
function growth(make: (count: number) => string, work: (text: string) => unknown = html): number {
  const count = 4000;
  const [once, twice] = [count, 2 * count].map((size) => {
    const text = make(size);
    const { steps, patterns } = countWork(SOURCES, () => work(text));
    expect([...patterns].filter((pattern) => !LINEAR_PATTERNS.has(pattern))).toEqual([]);
    return steps;
  }) as [number, number];
  return twice / once;
}

describe("blocks", () => {
  test.each([
    ["one\ntwo\n\nthree", "<p>one\ntwo</p><p>three</p>"],
    ["# A #\n### B", "<h3>A</h3><h5>B</h5>"],
    ["#hashtag", "<p>#hashtag</p>"],
    ["---\n***", "<hr></hr><hr></hr>"],
    ["> a\n> b\n\nc", "<blockquote><p>a\nb</p></blockquote><p>c</p>"],
    ["- a\n- b", "<ul><li>a</li><li>b</li></ul>"],
    ["1. a\n2. b", "<ol><li>a</li><li>b</li></ol>"],
    ["3) a\n4) b", '<ol start="3"><li>a</li><li>b</li></ol>'],
    ["- a\n  - b\n    - c\n- d", "<ul><li>a<ul><li>b<ul><li>c</li></ul></li></ul></li><li>d</li></ul>"],
    ["1. a\n   - b\n2. c", "<ol><li>a<ul><li>b</li></ul></li><li>c</li></ol>"],
    ["* a\n\n* b", "<ul><li>a</li><li>b</li></ul>"],
    ["- a\n\n  more\n- b", "<ul><li>a<p>more</p></li><li>b</li></ul>"],
    ["- a\nlazy\n\nafter", "<ul><li>a\nlazy</li></ul><p>after</p>"],
    ["text\n- a", "<p>text</p><ul><li>a</li></ul>"],
    ["in\n1985. a year", "<p>in\n1985. a year</p>"],
    ["line  \nbreak\\\nagain", "<p>line<br></br>break<br></br>again</p>"],
  ])("%j", (text, expected) => {
    expect(html(text)).toBe(expected);
  });

  test("code keeps its text, and an open fence runs to the end", () => {
    expect(parse("```rust\nlet a = *b;\n  <b>\n```\nafter").map(({ block }) => block)).toEqual([
      { kind: "code", language: "rust", text: "let a = *b;\n  <b>" },
      { kind: "paragraph", content: [{ kind: "text", text: "after" }] },
    ]);
    expect(parse("~~~\na\n\nb").map(({ block }) => block)).toEqual([{ kind: "code", language: "", text: "a\n\nb" }]);
    expect(html("1. a\n   ```\n   x\n     y\n   ```")).toContain("<code>x\n  y</code>");
  });

  test("tables", () => {
    const written = html("| a | b |\n|:--|--:|\n| 1 | `x|y` |\n| **2** |");
    expect(written).toContain('<th class="align-left" scope="col">a</th><th class="align-right" scope="col">b</th>');
    expect(written).toContain('<td class="align-right"><code>x|y</code></td>');
    expect(written).toContain('<td class="align-left"><strong>2</strong></td><td class="align-right"></td>');
    expect(html("a | b\nno dashes")).toBe("<p>a | b\nno dashes</p>");
    expect(html("before\n| a |\n|---|\n| 1 |")).toContain("<p>before</p><div");
  });

  test("boxes of tasks", () => {
    const written = html("- [x] done\n- [ ] open");
    expect(written).toContain('<input type="checkbox" disabled="" aria-label="done" checked=""></input>done');
    expect(written).toContain('aria-label="not done"></input>open');
  });
});

describe("within a line", () => {
  test.each([
    ["**a** *b* ***c*** ~~d~~", "<strong>a</strong> <em>b</em> <em><strong>c</strong></em> <del>d</del>"],
    ["__a__ _b_ snake_case_name", "<strong>a</strong> <em>b</em> snake_case_name"],
    ["2 * 3 * 4 and **open", "2 * 3 * 4 and **open"],
    ["**bold with *inner* part**", "<strong>bold with <em>inner</em> part</strong>"],
    ["`a*b*` ``x`y`` `open", "<code>a*b*</code> <code>x`y</code> `open"],
    ["\\*not\\* \\`code\\`", "*not* `code`"],
    ["a &lt; b &amp;&amp; c", "a &lt; b &amp;&amp; c"],
    ["~one~", "~one~"],
  ])("%j", (text, expected) => {
    expect(html(text)).toBe(`<p>${expected}</p>`);
  });

  const link = (href: string, text: string) =>
    `<a href="${href}" target="_blank" rel="noopener noreferrer nofollow">${text}</a>`;

  test.each([
    ["[a](https://example.org/x)", link("https://example.org/x", "a")],
    ["[**a**](https://example.org/a_(b) \"t\")", link("https://example.org/a_(b)", "<strong>a</strong>")],
    ["see https://example.org/a.", `see ${link("https://example.org/a", "https://example.org/a")}.`],
    ["(https://example.org/a)", `(${link("https://example.org/a", "https://example.org/a")})`],
    ["<https://example.org>", link("https://example.org/", "https://example.org")],
    ["<someone@example.org>", link("mailto:someone@example.org", "someone@example.org")],
    ["![a picture](https://example.org/p.png)", link("https://example.org/p.png", "a picture")],
    ["[no](relative) [no](#here) [a][b]", "no no [a][b]"],
  ])("%j", (text, expected) => {
    expect(html(text)).toBe(`<p>${expected}</p>`);
  });
});

describe("hostile text", () => {
  test.each([
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "[a](javascript:alert(1))",
    "[a](JaVaScRiPt:alert(1))",
    "[a](java\tscript:alert(1))",
    "[a](<javascript:alert(1)>)",
    "[a](data:text/html,<script>alert(1)</script>)",
    "[a](vbscript:x) [b](file:///etc/passwd) [c](blob:https://x/y)",
    "<javascript:alert(1)>",
    "![x](javascript:alert(1))",
    "`<b>` **<i>** | <u>\n|-|\n|<s>|",
    "```html\"><script>\n<script>\n```",
    "[\u0000](\u0001javascript:alert(1))",
  ])("%j makes only harmless nodes", (text) => {
    const written = html(text);
    expect(written).not.toMatch(/<(script|img|iframe|object|i|u|s|b)[\s>]/);
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

  test.each<[string, (count: number) => string]>([
    ["brackets", (count) => "[".repeat(count)],
    ["closed brackets", (count) => "[".repeat(count) + "](x)".repeat(100)],
    ["stars", (count) => "*a ".repeat(count)],
    ["paired stars", (count) => `${"*a ".repeat(count / 10)}${"b* ".repeat(count / 10)}`],
    ["ticks", (count) => "`a ``b ".repeat(count / 4)],
    ["code spans", (count) => "`a` ".repeat(count)],
    ["quotes", (count) => ">".repeat(count)],
    // The text itself grows with the square of its depth.
    ["nested lists", (count) => Array.from({ length: Math.sqrt(count * 20) }, (_, depth) => `${" ".repeat(depth * 2)}- a`).join("\n")],
    ["blank lines in a list", (count) => `- a${"\n".repeat(count)}b`],
    ["spaces after a fence", (count) => `\`\`\`${" ".repeat(count)}\``],
    ["spaces in a heading", (count) => `# ${" ".repeat(count)}a`],
    ["bars", (count) => "|".repeat(count)],
    ["tables", (count) => "a|b\n-|-\n".repeat(count / 10)],
    ["lines", (count) => "a\n".repeat(count)],
    ["addresses", (count) => "https://a.b/(((( ".repeat(count / 10)],
    ["link openings", (count) => "[a](".repeat(count / 4)],
    ["closing brackets after addresses", (count) => `https://a.b/${")".repeat(1900)} `.repeat(count / 2000)],
    ["spaces in a task", (count) => `- [ ] ${" ".repeat(count)}\u2028`],
    ["spaces in link targets", (count) => `[a](${" ".repeat(1000)}`.repeat(count / 1000)],
    ["tildes before a tick", (count) => `${"~".repeat(count)}\``],
    ["spaces before an odd line break", (count) => `# ${" ".repeat(count)}\u2028\n- ${" ".repeat(count)}\u2028`],
  ])("%s: twice as many take about twice the work", (_, make) => {
    expect(growth(make)).toBeLessThan(TOO_MUCH);
  });

  test.each<[string, (text: string) => unknown]>([
    ["a method", (text) => [...text].map((_, at) => text.indexOf("b", at))],
    ["a loop", (text) => {
      let steps = 0;
      for (let from = 0; from < text.length; from++) {
        for (let at = from; at < text.length; at++) {
          steps += 1;
        }
      }
      return steps;
    }],
  ])("work of %s that grows with the square is seen", (_, square) => {
    expect(growth((count) => "a".repeat(count / 10), square)).toBeGreaterThan(TOO_MUCH);
  });

  test("a pattern that is given a long text is seen", () => {
    const { patterns } = countWork(SOURCES, () => /^a+b?$/.test("a".repeat(3000)));
    expect([...patterns]).toEqual(["^a+b?$"]);
  });
});

describe("text that grows", () => {
  test("gives what the whole text gives, and keeps the nodes of finished blocks", () => {
    const text = "# Title\n\nA **bold** word.\n\n- one\n- two\n\n```js\nlet x;\n```\n\n| a |\n|---|\n| 1 |\n\nend";
    const target = fakeDocument.createElement("div");
    const stream = new MarkdownStream(target, options);
    let first: unknown;
    for (let length = 1; length <= text.length; length++) {
      stream.update(text.slice(0, length));
      const now = (target.children as unknown as unknown[])[0];
      if (length > 20) {
        first ??= now;
        expect(now).toBe(first);
      }
    }
    expect(String(target)).toBe(`<div>${html(text)}</div>`);
    stream.update("other");
    expect(String(target)).toBe("<div><p>other</p></div>");
  });

  test("every beginning of a text gives what it would give alone", () => {
    const text = [
      "in\n#hashtag\n# Title\ntext\n- a\n\n\n  more\n- b\n\nafter",
      "a | b\n-|-\n1 | 2\nx | y\n-|-x\n\n> quote\nlazy\n> more\n---\n***bold***",
      "1. a\n\n   ```\n   code\n\n   ```\n2. b\n\n~~~\nopen\n\n~~~\n\r\nend\r\nof it\n| t |\n|---|\n| 1 |\n\n3) c\n\n\n4) d",
    ].join("\n\n");
    const target = fakeDocument.createElement("div");
    const stream = new MarkdownStream(target, options);
    for (let length = 1; length <= text.length; length++) {
      stream.update(text.slice(0, length));
      expect(String(target)).toBe(`<div>${html(text.slice(0, length))}</div>`);
    }
  });
});
