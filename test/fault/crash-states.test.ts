import { readdirSync, utimesSync } from "node:fs";
import { rm } from "node:fs/promises";
import { basename, join } from "node:path";
import { SessionList, SessionRemove, SessionResume } from "@cookie-agent/sdk/protocol";
import { describe, expect, test, vi } from "vitest";
import { openTestKernel } from "../support/open-test-kernel.ts";
import { expectIntact } from "./support/intact-session.ts";
import { knownAt, type Recording, recordScript } from "./support/record-script.ts";
import { type Crash, SimulatedDisk } from "./support/simulated-disk.ts";
import { type DiskChange, isAppend, watchDisk } from "./support/watched-disk.mjs";

const EVERY_STATE = process.env["COOKIE_FAULT_RUNS"] === "all";
/** Before each of these something is open that has to be settled. */
const UNSETTLED = [
  "approval_user_decision_recorded",
  "tool_call_terminated",
  "user_input_admitted",
];

interface CrashPoint {
  readonly count: number;
  readonly crash: Crash;
  /** The last change was cut off in its middle. */
  readonly isTorn: boolean;
  /** So was the last one before the recovery. */
  readonly wasTorn?: boolean;
  /** What a kernel has then changed while it settled the session, with the paths of the recording. */
  readonly recovery?: readonly DiskChange[];
}

/** Leaves what the crash leaves and expects everything that was known by then. */
async function expectIntactAfter(recording: Recording, point: CrashPoint): Promise<void> {
  const { project, server, base, changes } = recording;
  const { count, crash, recovery = [] } = point;
  const dataDir = await leaveCrash(recording, point);
  // Of a change that was cut off in its middle nobody has learned anything.
  const isHalfDone = point.wasTorn === true || (point.isTorn && recovery.length === 0);
  const done = isHalfDone ? count - 1 : count;
  await project.write("marks", recording.marks[done] ?? "");
  try {
    const lost = crash === "killed" ? "process" : "power";
    await expectIntact({ project, server, dataDir, lost }, knownAt(recording, done));
  } catch (error) {
    const next = changes[count];
    const what = next === undefined ? "the end" : `${next.kind} ${next.path.slice(base.length)}`;
    const more = recovery.length > 0 ? ` and ${recovery.length} changes of the recovery` : "";
    throw new Error(`${crash} before change ${count}, ${what}${more}`, { cause: error });
  }
}

async function leaveCrash(recording: Recording, point: CrashPoint): Promise<string> {
  const { project, base, changes } = recording;
  const disk = new SimulatedDisk(base);
  const { count, crash, isTorn, wasTorn = false, recovery = [] } = point;
  const before = [...changes.slice(0, count), ...recovery];
  for (const [index, change] of before.entries()) {
    const isHalf = (isTorn && index === before.length - 1) || (wasTorn && index === count - 1);
    if (isHalf) disk.applyHalf(change);
    else disk.apply(change);
  }
  const dataDir = join(project.home, "crashed");
  await rm(dataDir, { recursive: true, force: true });
  disk.leave(dataDir, crash);
  return dataDir;
}

/** What a kernel changes that settles the session after a crash, as if it had happened where it was recorded. */
async function recordRecovery(
  recording: Recording,
  { count, wasTorn = false }: Pick<CrashPoint, "count" | "wasTorn">,
): Promise<DiskChange[]> {
  const { project, server, base } = recording;
  const dataDir = await leaveCrash(recording, { count, crash: "killed", isTorn: wasTorn });
  const changes: DiskChange[] = [];
  const here = (path: string) => base + path.slice(dataDir.length);
  const stop = watchDisk(dataDir, {
    after: (change) => {
      const moved = { ...change, path: here(change.path) };
      changes.push(moved.kind === "rename" ? { ...moved, to: here(moved.to) } : moved);
    },
  });
  const kernel = await openTestKernel({ on: { project, server }, dataDir });
  const { sessionId } = knownAt(recording, count);
  if (sessionId === undefined) throw new Error("nothing was recorded");
  await kernel.client.request(SessionResume, { session_id: sessionId });
  await kernel.close();
  stop();
  return changes;
}

/** What a process that died had on its way to the disk. */
function leftoversIn(dataDir: string): string[] {
  const names = readdirSync(dataDir, { recursive: true, encoding: "utf8" });
  return names.filter((name) => name.endsWith(".tmp"));
}

function kindOf(path: string): string {
  const name = basename(path);
  if (/^\.[0-9a-f-]{36}\.[0-9a-f-]{36}\.tmp$/.test(name)) return "session";
  if (name.startsWith(".capture-") || /^\.[0-9a-f]{64}\./.test(name)) return "output";
  if (/^\.(metadata|index\.json)\./.test(name)) return "cache";
  return name.replace(/\.\d+-[0-9a-f]+\.tmp$/, "");
}

describe("the states of the disk in which a crash may leave it", () => {
  test.for<readonly [string, Crash, boolean]>([
    [
      "[killed: publication, append, sync, approval, tool call, artifact, metadata, settings, grants, compaction, branch] [S-024] before each change of the disk",
      "killed",
      false,
    ],
    [
      "[killed: publication, append, sync, approval, tool call, artifact, metadata, settings, grants, compaction, branch] [S-024] in the middle of each write",
      "killed",
      true,
    ],
    [
      "[power lost: publication, append, sync, approval, tool call, artifact, metadata, settings, grants, compaction, branch] [S-238] unsynced bytes are gone",
      "lost data",
      false,
    ],
    [
      "[power lost: publication, append, sync, approval, tool call, artifact, metadata, settings, grants, compaction, branch] [S-104] [S-238] unsynced bytes and names are gone",
      "lost names",
      false,
    ],
  ])("%s", { timeout: 600_000 }, async ([, crash, isTorn]) => {
    const recording = await recordScript();
    const { changes } = recording;
    const step = EVERY_STATE ? 1 : crash === "killed" ? 2 : 4;
    for (let count = crash === "lost data" ? 1 : 0; count <= changes.length; count += step) {
      if (isTorn && changes[count - 1]?.kind !== "write") continue;
      await expectIntactAfter(recording, { count, crash, isTorn });
    }
    expect(changes.length).toBeGreaterThan(60);
  });

  test("[killed: recovery] [power lost: recovery] [S-085] [S-096] at each change of the recovery from a crash", {
    timeout: 600_000,
  }, async () => {
    const recording = await recordScript();
    for (const type of UNSETTLED) {
      const count = recording.changes.findIndex(
        (change) => change.kind === "write" && change.bytes.includes(`"${type}"`),
      );
      const recovery = await recordRecovery(recording, { count });
      expect(recovery.length).toBeGreaterThan(1);
      for (let done = 1; done <= recovery.length; done += 1) {
        const point = { count, recovery: recovery.slice(0, done) };
        const isTorn = recovery[done - 1]?.kind === "write";
        await expectIntactAfter(recording, { ...point, crash: "killed", isTorn });
        await expectIntactAfter(recording, { ...point, crash: "lost names", isTorn: false });
      }
    }
  });

  test("[killed: opening] [power lost: opening] [S-056] at each change that opening a session makes, whatever the end of its log", {
    timeout: 600_000,
  }, async () => {
    const recording = await recordScript();
    const { changes } = recording;
    const torn = changes.findLastIndex((change) => isAppend(change)) + 1;
    for (const at of [
      { count: torn, wasTorn: true },
      { count: changes.length, wasTorn: false },
    ]) {
      const opening = await recordRecovery(recording, at);
      expect(opening.length).toBeGreaterThan(1);
      for (let done = 0; done <= opening.length; done += 1) {
        const recovery = opening.slice(0, done);
        for (const crash of ["killed", "lost data", "lost names"] as const) {
          await expectIntactAfter(recording, { ...at, crash, isTorn: false, recovery });
        }
      }
    }
  });

  test("[killed: publication, artifact, metadata] [S-113] [S-274] what was on its way to the disk is cleared away by the next kernel", {
    timeout: 600_000,
  }, async () => {
    const recording = await recordScript();
    const { project, server, changes } = recording;
    const { sessionId: session_id } = knownAt(recording, changes.length);
    if (session_id === undefined) throw new Error("nothing was recorded");
    const met = new Set<string>();
    for (let count = 1; count <= changes.length; count += 1) {
      if (changes[count - 1]?.kind !== "write") continue;
      const dataDir = await leaveCrash(recording, { count, crash: "killed", isTorn: true });
      const left = leftoversIn(dataDir).map(kindOf).join();
      if (left === "" || met.has(left)) continue;
      met.add(left);
      const hoursAgo = new Date(Date.now() - 2 * 60 * 60 * 1000);
      for (const name of leftoversIn(dataDir)) utimesSync(join(dataDir, name), hoursAgo, hoursAgo);
      vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
      const kernel = await openTestKernel({ on: { project, server }, dataDir });
      vi.advanceTimersByTime(5000);
      vi.useRealTimers();
      await kernel.client.request(SessionResume, { session_id }).catch(() => undefined);
      await kernel.run("Next.");
      await expect.poll(() => leftoversIn(dataDir)).toEqual([]);
      await kernel.close();
    }
    expect([...met]).toEqual(expect.arrayContaining(["session", "output", "cache", "layout.json"]));
  });

  test("[killed: removal] [power lost: removal] a session that is removed is there whole or not at all, and its fork stays", {
    timeout: 600_000,
  }, async () => {
    const recording = await recordScript();
    const { project, server, base, changes } = recording;
    const { sessionId, forks } = knownAt(recording, changes.length);
    const fork = forks[0]?.sessionId;
    if (sessionId === undefined || fork === undefined) throw new Error("nothing was recorded");
    const removal: DiskChange[] = [];
    const stop = watchDisk(base, { after: (change) => void removal.push(change) });
    const kernel = await openTestKernel({ on: { project, server }, dataDir: base });
    const before = await kernel.client.readEvents(sessionId);
    const forked = await kernel.client.readEvents(fork);
    await kernel.client.request(SessionRemove, { session_id: sessionId });
    await kernel.close();
    stop();
    expect(removal.length).toBeGreaterThan(0);
    for (let done = 0; done <= removal.length; done += 1) {
      for (const crash of ["killed", "lost names"] as const) {
        const recovery = removal.slice(0, done);
        const point = { count: changes.length, crash, isTorn: false, recovery };
        const dataDir = await leaveCrash(recording, point);
        const next = await openTestKernel({ on: { project, server }, dataDir });
        const { sessions, diagnostics } = await next.client.request(SessionList, {});
        expect(diagnostics).toEqual([]);
        const ids = sessions.map(({ session_id }) => session_id);
        expect(ids).toContain(fork);
        expect(await next.client.readEvents(fork)).toEqual(forked);
        if (ids.includes(sessionId)) {
          expect(await next.client.readEvents(sessionId)).toEqual(before);
          await next.client.request(SessionRemove, { session_id: sessionId });
        }
        await expect(next.client.readEvents(sessionId)).rejects.toMatchObject({
          code: "session_missing",
        });
        await next.close();
      }
    }
  });
});
