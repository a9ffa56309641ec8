import { afterEach, describe, expect, test, vi } from "vitest";
import { openTestKernel } from "../support/open-test-kernel.ts";
import { expectIntact } from "./support/intact-session.ts";
import { scriptProject } from "./support/record-script.ts";
import { ScriptedSession } from "./support/scripted-session.ts";
import { OPERATIONS } from "./support/stored-session.ts";

const DAY_MS = 24 * 60 * 60 * 1000;
/** Where the clock stands after each thing that the client learns, in days from now, over and over. */
const JUMPS = [-1, 400, -9000, 0, 3];

describe("a clock that jumps back and far ahead", () => {
  afterEach(() => {
    vi.useRealTimers();
  });

  test("[clock jump: publication, append, approval, settings, grants, compaction, branch, removal, recovery, opening] [S-037] at everything that happens: no time runs back, nothing ends early, and the next kernel goes on", async () => {
    const { project, server, gates } = await scriptProject();
    const startMs = Date.now();
    let jumps = 0;
    const jump = () => {
      const days = JUMPS[jumps % JUMPS.length] ?? 0;
      jumps += 1;
      vi.setSystemTime(startMs + days * DAY_MS);
    };
    vi.useFakeTimers({ toFake: ["Date"] });
    const kernel = await openTestKernel({ on: { project, server } });
    const session = new ScriptedSession(kernel.client, gates);
    session.onLearned = jump;
    await session.play();
    expect(session.refused).toEqual([]);
    expect(session.grant).toBe("taken back");
    expect(jumps).toBeGreaterThan(50);
    const types = [...session.seen.values()].map(({ payload }) => payload.type);
    expect(types.filter((type) => /failed|expired|interrupted|abandoned/.test(type))).toEqual([]);
    await kernel.close();

    vi.setSystemTime(startMs - 10_000 * DAY_MS);
    await expectIntact({ project, server, lost: "process" }, session);
    const again = await openTestKernel({ on: { project, server } });
    const events = session.sessionId ? await again.client.readEvents(session.sessionId) : [];
    const times = events.map(({ timestamp }) => timestamp);
    expect(times).toEqual([...times].sort());
    expect(events.length).toBeGreaterThan(session.seen.size - 1);
    if (session.sessionId !== undefined) await OPERATIONS.removal(again, session.sessionId);
  });
});
