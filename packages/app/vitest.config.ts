import { defineConfig } from "vitest/config";
import { demoModel } from "./vite/demo-model.ts";

export default defineConfig({ plugins: [demoModel()], test: { include: ["test/unit/**/*.test.ts"], testTimeout: 60_000 } });
