import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    name: "bench",
    root: import.meta.dirname,
    include: ["*.bench.ts"],
    pool: "forks",
    fileParallelism: false,
    testTimeout: 3_600_000,
    hookTimeout: 120_000,
    teardownTimeout: 10_000,
  },
});
