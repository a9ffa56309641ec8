import { defineConfig } from "vitest/config";

const source = { conditions: ["@cookie-agent/source"] };
const unit = { resolve: source, ssr: { resolve: source } };
// What a busy machine needs at most; a test that has not ended by then hangs.
const patience = {
  root: import.meta.dirname,
  testTimeout: 120_000,
  hookTimeout: 120_000,
  expect: { poll: { timeout: 60_000 } },
};

export default defineConfig({
  test: {
    projects: [
      { ...unit, test: { ...patience, name: "unit", include: ["unit/**/*.test.ts"] } },
      {
        test: { ...patience, name: "architecture", include: ["architecture/**/*.test.ts"] },
      },
      { test: { ...patience, name: "e2e", include: ["e2e/**/*.test.ts"] } },
      {
        test: {
          ...patience,
          name: "fault",
          include: ["fault/**/*.test.ts"],
          // It watches only those who come after it.
          setupFiles: ["fault/support/watched-disk.mjs"],
        },
      },
    ],
  },
});
