import { readdirSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { runConformance } from "@cookie-agent/sdk/testing";
import { expect, test } from "vitest";

const PLUGINS = join(import.meta.dirname, "../../../plugins");
const hostEntry = createRequire(import.meta.url).resolve("@cookie-agent/sdk/host");

test.for(readdirSync(PLUGINS))(
  "[E-190] the shipped plugin %s passes every check that applies, directly and behind `ch`",
  async (name) => {
    const report = await runConformance({ directory: join(PLUGINS, name) }, { hostEntry });
    expect(report.results.filter(({ outcome }) => outcome === "failed")).toEqual([]);
    const passed = (run: string) =>
      report.results.filter((each) => each.run === run && each.outcome === "passed");
    const checks = passed("direct").map(({ check }) => check);
    expect(checks).toEqual(
      expect.arrayContaining(["C-01", "C-02", "C-03", "C-04", "C-05", "C-07", "C-08", "C-14"]),
    );
    expect(passed("behind_ch").map(({ check }) => check)).toEqual(checks);
  },
);
