// KaTeX's style sheet names each font in three formats. Every browser with WebGPU reads WOFF2, so the other two are left out: the
// service worker would store them all.

import type { Plugin } from "vite";

export function katexFonts(): Plugin {
  return {
    name: "rullama-katex-fonts",
    enforce: "pre",
    transform(code, id) {
      if (!/\/katex(\.min)?\.css/.test(id)) {
        return undefined;
      }
      const without = code.replace(/,\s*url\([^)]*\)\s*format\((["'])(?:woff|truetype)\1\)/g, "");
      if (without === code || /\.(?:woff|ttf)\b/.test(without)) {
        this.error("the fonts in KaTeX's style sheet are not written as vite/katex-fonts.ts expects");
      }
      return { code: without, map: null };
    },
  };
}
