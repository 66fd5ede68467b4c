// Twice the text is about twice the work, whatever the text is, at once and token by token.

// First, so that V8 counts the blocks of what follows.
import { countWork } from "./work";
import { describe, expect, test } from "vitest";
import { MarkdownDocument } from "../../src/markdown/document";
import { html } from "./markdown-page";

/** The parser, this app's part of it, and Preact. */
const SOURCES = ["/src/markdown/", "/node_modules/micromark", "/node_modules/mdast-util", "/node_modules/preact", "/unit/markdown-work.test.ts"];

/** Twice the text is twice the work where it grows evenly, four times where it grows with the square. */
const TOO_MUCH = 2.5;

/** Characters at which the work is measured, and at twice as many. Several times longer than the longest piece. */
const LENGTH = 16_000;

/** Steps for one character that no text may exceed: plain words take about a hundred. */
const MOST_STEPS = 3000;

/** Characters that are added at a time: many tokens, to keep the test short. */
const TOKEN = 1000;

const repeat = (text: string) => (length: number) => text.repeat(Math.ceil(length / text.length));

function counted(length: number, begin: (index: number) => string): string {
  let text = "";
  for (let index = 0; text.length < length; index++) {
    text += begin(index);
  }
  return text;
}

const FAMILIES: Record<string, (length: number) => string> = {
  words: repeat("some words here "),
  lines: repeat("some words here\n"),
  paragraphs: repeat("Some *words* in a paragraph.\n\n"),
  headings: repeat("# a\n"),
  "opening brackets": repeat("["),
  "closing brackets": repeat("]"),
  "empty brackets": repeat("[]"),
  "nested brackets": (length) => "[".repeat(length / 2) + "]".repeat(length / 2),
  // Only the second half is parsed, so this is longer, to be several pieces as well.
  "nested links": (length) => "[".repeat(0.8 * length) + "](x)".repeat(0.8 * length),
  "opening pictures": repeat("!["),
  "opening links": repeat("[a]("),
  "opening angle addresses": repeat("[a](<"),
  links: repeat("[a](b) "),
  "brackets in an address": (length) => `[a](${"(".repeat(length / 2)}${")".repeat(length / 2)})`,
  "closing brackets after an address": (length) => `https://a.b/${")".repeat(length)}`,
  "spaces in an address": (length) => `[a](${" ".repeat(length)}`,
  "two kinds of opening marks": repeat("*a _b "),
  "opening stars": repeat("*a "),
  "closing stars": repeat("a* "),
  "paired stars": (length) => "*a ".repeat(length / 6) + "b* ".repeat(length / 6),
  "stars within words": repeat("a**b"),
  "mixed stars": repeat("*a**a"),
  stars: repeat("*"),
  tildes: repeat("~~a "),
  "underscores within words": repeat("a_a_"),
  quotes: repeat(">"),
  "quotes on lines": repeat(">\n"),
  "quoted text": repeat("> some words\n"),
  "lists on one line": repeat("- "),
  "numbered lists on one line": repeat("1. "),
  "quotes and lists on one line": repeat("> - "),
  "deep quotes with lazy lines": (length) => `${"> ".repeat(length / 4)}a\n${"b\n".repeat(length / 4)}`,
  "empty items": repeat("-\n"),
  items: repeat("- a\n"),
  "loose items": repeat("- a\n\n"),
  tasks: repeat("- [x] a\n"),
  "nested items": (length) => counted(length, (index) => `${" ".repeat(2 * (index % 40))}- a\n`),
  "a long item": (length) => `- a\n${"  b\n".repeat(length / 4)}`,
  "an item with blank lines": (length) => `- a${"\n".repeat(length)}b`,
  "single ticks": repeat("` "),
  "runs of ticks": (length) => counted(length, (index) => `${"`".repeat(index % 100)} `),
  "mixed ticks": repeat("`a``b "),
  ticks: repeat("`"),
  fences: repeat("```\n"),
  "open fence": (length) => `\`\`\`js\n${"let a;\n".repeat(length / 7)}`,
  "a long line of code": (length) => `\`\`\`js\n${"a".repeat(length)}`,
  "spaces after a fence": (length) => `\`\`\`${" ".repeat(length)}\``,
  bars: repeat("|"),
  "bars in words": repeat("a|"),
  "square table": (length) => {
    const columns = Math.floor(Math.sqrt(length / 4));
    return `${"|a".repeat(columns)}|\n${"|-".repeat(columns)}|\n${"|\n".repeat((length - 4 * columns) / 2)}`;
  },
  "wide table": (length) => `${"|a".repeat(length / 4)}|\n${"|-".repeat(length / 4)}|\n`,
  "long table": (length) => `|a|b|\n|-|-|\n${"|c|d|\n".repeat(length / 6)}`,
  "many tables": repeat("a|b\n-|-\n"),
  "lines with bars": repeat("a|b\n"),
  addresses: repeat("http://a.b/ "),
  "www.": repeat("www."),
  "mail addresses": repeat("a@b.c "),
  "at signs": repeat("a@"),
  "dots and words": repeat("a.b@c_"),
  "one word": repeat("a"),
  "words with hyphens": repeat("a-"),
  "opening tags": repeat("<a "),
  "angle brackets": repeat("<"),
  comments: repeat("<!-- "),
  "opening autolinks": repeat("<a:b"),
  ampersands: repeat("&a"),
  entities: repeat("&amp;"),
  backslashes: repeat("\\"),
  "spaces in a heading": (length) => `# ${" ".repeat(length)}a`,
  underlines: repeat("a\n===\n"),
  definitions: (length) => counted(length, (index) => `[${index}]: b\n`),
  "one definition": repeat("[a]: b\n"),
  "definitions after their use": (length) => `${counted(length / 2, (index) => `[${index}]\n\n`)}${counted(length / 2, (index) => `[${index}]: b\n\n`)}`,
  "open titles": repeat("[a]: x '"),
  rules: repeat("***\n"),
  "indented code": repeat("    a\n"),
  "indented code with blank lines": repeat("    a\n\n"),
  tabs: repeat("\t"),
  "blank lines": repeat("\n"),
  "line breaks": repeat("a\\\n"),
  "carriage returns": repeat("a\r"),
  dollars: repeat("$"),
  prices: repeat("$5 and "),
  formulas: repeat("$x$ "),
  "double dollars": repeat("$$ "),
  "double dollars on lines": repeat("$$\na\n"),
  "opening TeX brackets": repeat("\\("),
  "opening displays": repeat("\\[ a "),
  "opening displays on lines": repeat("\\[ a\n"),
  mixture: repeat("**a *b [c](d) `e` $f$ _g_\n"),
};

/** Streams the text into a document, without the page. */
function stream(text: string): void {
  const document = new MarkdownDocument();
  for (let length = TOKEN; length < text.length; length += TOKEN) {
    document.update(text.slice(0, length), true);
  }
  document.update(text, false);
}

function measure(make: (length: number) => string, run: (text: string) => unknown): { growth: number; steps: number } {
  const [once, twice] = [LENGTH, 2 * LENGTH].map((length) => {
    const text = make(length);
    return countWork(SOURCES, () => run(text)) / text.length;
  }) as [number, number];
  return { growth: (2 * twice) / once, steps: twice };
}

describe("at once", () => {
  test.each(Object.entries(FAMILIES))("%s", (_, make) => {
    const { growth, steps } = measure(make, html);
    expect(growth).toBeLessThan(TOO_MUCH);
    expect(steps).toBeLessThan(MOST_STEPS);
  });
});

describe("token by token", () => {
  test.each(Object.entries(FAMILIES))("%s", (_, make) => {
    expect(measure(make, stream).growth).toBeLessThan(TOO_MUCH);
  });
});
