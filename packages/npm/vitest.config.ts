import { fileURLToPath } from "node:url";
import { compile } from "svelte/compiler";
import { transformWithOxc, type Plugin } from "vite";
import { defineConfig } from "vitest/config";
import { compileScript, parse } from "vue/compiler-sfc";

/** Compiles the examples for Vue and Svelte, as the plugins of these frameworks do. */
const components: Plugin = {
  name: "components",
  enforce: "pre",
  async transform(source, id) {
    if (id.endsWith(".vue")) {
      const { descriptor, errors } = parse(source, { filename: id });
      if (errors.length > 0) throw errors[0];
      return transformWithOxc(compileScript(descriptor, { id: "example", inlineTemplate: true }).content, `${id}.ts`);
    }
    if (id.endsWith(".svelte")) {
      return { code: compile(source, { filename: id, generate: "client" }).js.code };
    }
    return undefined;
  },
};

const at = (path: string) => fileURLToPath(new URL(path, import.meta.url));

export default defineConfig({
  plugins: [components],
  test: {
    include: ["test/**/*.test.ts"],
    // The examples import the package by its name. Here they get an engine without a model.
    alias: { rullama: at("test/examples/stub-engine.ts") },
  },
  // Svelte has another entry point for servers, which Node would get.
  resolve: { conditions: ["browser"] },
  oxc: { jsx: { runtime: "automatic" } },
});
