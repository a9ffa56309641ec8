import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { bashLine, faultProject, startOffline } from "./support/fault-project.ts";

describe("parallel calls of one turn", () => {
  test("[T-021] eight commands of one second all run at the same time", async () => {
    const project = await faultProject();
    const names = Array.from({ length: 8 }, (_, index) => `command-${index}`);
    const run = startOffline(
      project,
      names.map((name) => bashLine(`date +%s%3N > ${name}; sleep 1; date +%s%3N >> ${name}`)),
    );
    expect((await run.result).exitCode).toBe(0);
    const intervals = await Promise.all(
      names.map(async (name) => {
        const text = await readFile(join(project.cwd, name), "utf8");
        return text.trim().split("\n").map(Number);
      }),
    );
    const lastStart = Math.max(...intervals.map(([start = Number.NaN]) => start));
    const firstEnd = Math.min(...intervals.map(([, end = Number.NaN]) => end));
    expect(firstEnd).toBeGreaterThan(lastStart);
  });
});
