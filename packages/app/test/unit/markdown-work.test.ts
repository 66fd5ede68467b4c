// The work grows with the length of the text and no faster, whatever the text is, at once and while it is written.

// First, so that V8 counts the blocks of what follows.
import { countWork } from "./work";
import { describe, expect, test } from "vitest";
import { MarkdownDocument } from "../../src/markdown/document";
import { html } from "./markdown-page";

/** The parser, this app's part of it, and Preact. */
const SOURCES = ["/src/markdown/", "/node_modules/micromark", "/node_modules/mdast-util", "/node_modules/preact", "/unit/markdown-work.test.ts"];

/** Characters of a text whose work is counted: more than the longest piece, so that every limit of the parser is in effect. */
const LENGTH = 9000;

/** Steps for one character that no text may exceed: most take one to four hundred, the worst 1400. */
const MOST_STEPS = 2000;

/** Characters of a growing text, which is measured again at twice as many: several pieces even at first. */
const GROWING_LENGTH = 16_000;

/** Characters that are added at a time: many tokens, to keep the test short. */
const ADDED = 2000;

/** Twice the text is twice the work if it grows evenly, four times if it grows with the square. */
const TOO_MUCH = 2.5;

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
  // Only the second half is parsed, so this text is longer: it must be several pieces as well.
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

/** One family for each limit and each way to divide a text: for all of them this would take minutes. */
const GROWING = [
  "words",
  "paragraphs",
  "nested brackets",
  "mixed stars",
  "deep quotes with lazy lines",
  "a long item",
  "runs of ticks",
  "open fence",
  "wide table",
  "definitions after their use",
  "opening displays on lines",
  "mixture",
];

/** Writes the text into a document, some of it at a time, without the page. */
function write(text: string): void {
  const document = new MarkdownDocument();
  for (let length = ADDED; length < text.length; length += ADDED) {
    document.update(text.slice(0, length), true);
  }
  document.update(text, false);
}

/** Steps for each character of a text. */
function stepsOf(text: string, run: (text: string) => unknown): number {
  return countWork(SOURCES, () => run(text)) / text.length;
}

describe("a whole text", () => {
  test.each(Object.entries(FAMILIES))("%s", (_, make) => {
    expect(stepsOf(make(LENGTH), html)).toBeLessThan(MOST_STEPS);
  });
});

describe.each([
  ["at once", html],
  ["while it is written", write],
])("a text of twice the length, %s", (_, run) => {
  test.each(GROWING)("%s", (name) => {
    const make = FAMILIES[name] as (length: number) => string;
    const [once, twice] = [GROWING_LENGTH, 2 * GROWING_LENGTH].map((length) => stepsOf(make(length), run)) as [number, number];
    expect((2 * twice) / once).toBeLessThan(TOO_MUCH);
  });
});
