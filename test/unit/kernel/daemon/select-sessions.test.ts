import type { SessionId, SessionMeta } from "@cookie-agent/sdk/protocol";
import { describe, expect, test } from "vitest";
import { selectSessions } from "../../../../kernel/src/daemon/select-sessions.ts";
import { createId } from "../../../../kernel/src/support/create-id.ts";
import { metadataOf } from "../event/event-fixtures.ts";

function sessionOf(changes: Partial<SessionMeta> = {}): SessionMeta {
  return { ...metadataOf(createId<SessionId>()), ...changes };
}

describe("a list of sessions", () => {
  const all = [
    sessionOf({ last_activity: "2026-03-03T00:00:00+02:00", status: "failed" }),
    sessionOf({ last_activity: "2026-03-02T00:00:00.000Z", status: "completed" }),
    sessionOf({ last_activity: "2026-03-01T00:00:00.000Z", status: "running" }),
  ];

  test("keeps its order and says when there is more", () => {
    expect(selectSessions(all, {})).toEqual({ sessions: all });
    expect(selectSessions(all, { limit: 3 })).toEqual({ sessions: all });
    expect(selectSessions(all, { limit: 2 })).toEqual({ sessions: all.slice(0, 2), more: true });
    expect(selectSessions(all, { limit: 1, status: ["running"] })).toEqual({
      sessions: all.slice(2),
    });
  });

  test("a moment is compared as a moment, whatever its zone", () => {
    const since = "2026-03-02T22:00:00.000Z";
    expect(selectSessions(all, { since })).toEqual({ sessions: all.slice(0, 1) });
  });

  test("never grows over the frame that carries it", () => {
    const reason = "€".repeat(1024);
    const damaged = Array.from({ length: 1000 }, (_, seq) => ({ seq, reason }));
    const sessions = Array.from({ length: 40 }, () => sessionOf({ skipped_events: damaged }));
    const selected = selectSessions(sessions, {});
    expect(selected.more).toBe(true);
    expect(selected.sessions.length).toBeGreaterThan(0);
    expect(Buffer.byteLength(JSON.stringify(selected))).toBeLessThan(16 * 1024 * 1024);
  });
});
