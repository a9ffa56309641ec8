import { defineConfig } from "vitest/config";

const source = { conditions: ["@cookie-agent/source"] };
const unit = { resolve: source, ssr: { resolve: source } };

export default defineConfig({
  test: {
    projects: [
      {
        ...unit,
        test: { name: "unit", include: ["unit/**/*.test.ts"], root: import.meta.dirname },
      },
      {
        test: {
          name: "architecture",
          include: ["architecture/**/*.test.ts"],
          root: import.meta.dirname,
        },
      },
      {
        test: {
          name: "e2e",
          include: ["e2e/**/*.test.ts"],
          root: import.meta.dirname,
          testTimeout: 60_000,
          hookTimeout: 60_000,
        },
      },
      {
        test: {
          name: "fault",
          include: ["fault/**/*.test.ts"],
          root: import.meta.dirname,
          testTimeout: 120_000,
          hookTimeout: 60_000,
        },
      },
    ],
  },
});
