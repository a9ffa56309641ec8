import { describe, expect, test } from "vitest";
import { parseSince } from "../../../cli/src/parse-since.ts";

const NOW = Date.parse("2026-05-10T12:00:00.000Z");

describe("a moment on the command line", () => {
  test.for([
    ["90s", "2026-05-10T11:58:30.000Z"],
    ["90m", "2026-05-10T10:30:00.000Z"],
    ["12h", "2026-05-10T00:00:00.000Z"],
    ["7d", "2026-05-03T12:00:00.000Z"],
    ["2026-01-31T08:00Z", "2026-01-31T08:00:00.000Z"],
    ["2026-01-31 08:00:05+02:00", "2026-01-31T06:00:05.000Z"],
  ] as const)("%s is %s", ([text, timestamp]) => {
    expect(parseSince(text, NOW)).toBe(timestamp);
  });

  test("a date and a time without a zone are local", () => {
    expect(parseSince("2026-01-31", NOW)).toBe(new Date(2026, 0, 31).toISOString());
    expect(parseSince("2026-01-31T08:00", NOW)).toBe(new Date(2026, 0, 31, 8).toISOString());
  });

  test.for(["", "yesterday", "1w", "-1d", "999999999d", "2026-13-01", "2026-01-31T25:00", "5"])(
    "%j is none",
    (text) => {
      expect(() => parseSince(text, NOW)).toThrow(/is no moment/);
    },
  );
});
