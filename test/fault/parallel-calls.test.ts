import { describe, expect, test } from "vitest";
import { payloadsOf, readOnlyLog } from "../support/session-log.ts";
import { bashLine, faultProject, startOffline } from "./support/fault-project.ts";

const CALLS = 8;

describe("parallel calls of one turn", () => {
  test("[T-021] eight commands all run at the same time", async () => {
    const project = await faultProject();
    const meet = (name: string) =>
      bashLine(
        `: > ${name}; until [ "$(ls here-* | wc -l)" = ${CALLS} ]; do sleep 0.02; done; echo met`,
        { timeout: 600_000 },
      );
    const run = startOffline(
      project,
      Array.from({ length: CALLS }, (_, index) => meet(`here-${index}`)),
    );
    expect((await run.result).exitCode).toBe(0);
    const ends = payloadsOf(await readOnlyLog(project), "tool_call_terminated");
    expect(ends.map(({ outcome, result }) => [outcome, result?.output.includes("met")])).toEqual(
      Array.from({ length: CALLS }, () => ["completed", true]),
    );
  });
});
