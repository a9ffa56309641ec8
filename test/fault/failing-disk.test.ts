import { mkdirSync } from "node:fs";
import { appendFile, readFile, rm, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import {
  isCookieError,
  SessionList,
  SessionRemove,
  SessionResume,
} from "@cookie-agent/sdk/protocol";
import { describe, expect, test } from "vitest";
import { openTestKernel } from "../support/open-test-kernel.ts";
import { findLogs } from "../support/session-log.ts";
import { expectIntact } from "./support/intact-session.ts";
import { openEnds } from "./support/log-lines.ts";
import { scriptProject } from "./support/record-script.ts";
import { ScriptedSession } from "./support/scripted-session.ts";
import { OPERATIONS, type StoredSession, storedSession } from "./support/stored-session.ts";
import { type DiskChange, watchDisk } from "./support/watched-disk.mjs";

const EVERY_CHANGE = process.env["COOKIE_FAULT_RUNS"] === "all";
/** Changes that fail one after the other before the disk works again. */
const SPELLS = [1, 4];

interface Failure {
  readonly code: string;
  readonly strikes: ReadonlySet<DiskChange["kind"]>;
}

const FAILURES: Readonly<Record<string, Failure>> = {
  full: { code: "ENOSPC", strikes: new Set(["create", "write", "mkdir", "rename"]) },
  broken: {
    code: "EIO",
    strikes: new Set(["create", "write", "sync", "truncate", "mkdir", "rename", "remove"]),
  },
  "read-only": {
    code: "EROFS",
    strikes: new Set(["create", "write", "truncate", "mkdir", "rename", "remove"]),
  },
};

describe("a disk that fails for a while", () => {
  test.for<readonly [string, keyof typeof FAILURES]>([
    [
      "[disk full: publication, append, sync, approval, tool call, artifact, metadata, settings, grants, compaction, branch] [B104] [S-047] [S-246] becomes full",
      "full",
    ],
    [
      "[I/O error: publication, append, sync, approval, tool call, artifact, metadata, settings, grants, compaction, branch] [S-026] [S-047] [S-246] reports errors",
      "broken",
    ],
    [
      "[read-only: publication, append, sync, approval, tool call, artifact, metadata, settings, grants, compaction, branch] [S-047] [S-246] takes no change",
      "read-only",
    ],
  ])(
    "%s at every change: what was refused is not there, and work goes on without a restart",
    { timeout: 600_000 },
    async ([, name]) => {
      const failure = FAILURES[name];
      if (failure === undefined) throw new Error(`no failure ${name}`);
      const step = EVERY_CHANGE ? 1 : 36;
      for (const spell of SPELLS) {
        let at = spell % step;
        while (await strike(failure, at, spell)) at += step;
        expect(at).toBeGreaterThan(50);
      }
    },
  );

  test.for<readonly [string, keyof typeof FAILURES]>([
    ["[disk full: removal, recovery, opening] [S-047] becomes full", "full"],
    ["[I/O error: removal, recovery, opening] [S-047] reports errors", "broken"],
    ["[read-only: removal, recovery, opening] [S-047] takes no change", "read-only"],
  ])(
    "%s while a stored session is opened, settled or removed: it is said, and done once the disk works",
    { timeout: 600_000 },
    async ([, name]) => {
      const failure = FAILURES[name];
      if (failure === undefined) throw new Error(`no failure ${name}`);
      const stored = await storedSession();
      const step = EVERY_CHANGE ? 1 : 5;
      const spells = [Number.POSITIVE_INFINITY, ...(EVERY_CHANGE ? SPELLS : SPELLS.slice(0, 1))];
      for (const [index, spell] of spells.entries()) {
        for (const place of ["opening", "recovery", "removal"] as const) {
          let at = index % step;
          while (await strikeStored(stored, { failure, place, at, spell })) at += step;
          if (index === 0) expect(at).toBeGreaterThan(0);
        }
      }
    },
  );

  test("[I/O error: publication] [S-026] a publication that fails and cannot be taken back is made again", async () => {
    const { project, server, gates } = await scriptProject();
    const dataDir = join(project.home, "failing");
    mkdirSync(dataDir);
    let isPublished = false;
    let failures = 0;
    const stop = watchDisk(dataDir, {
      after({ kind, path }) {
        if (kind === "rename" && basename(path).startsWith(".0")) isPublished = true;
      },
      before({ kind, path }) {
        const isOfIt = kind === "remove" || (kind === "sync" && path.endsWith("-project"));
        if (!isPublished || !isOfIt || failures === 2) return;
        failures += 1;
        throw Object.assign(new Error("EIO: as the test wants it"), { code: "EIO" });
      },
    });
    const kernel = await openTestKernel({ on: { project, server }, dataDir });
    const session = new ScriptedSession(kernel.client, gates);
    await session.play();
    stop();
    expect(failures).toBe(2);
    expect(session.refused[0]).toMatchObject({
      what: "start run-1",
      error: { code: "storage_failed" },
    });
    expect(session.refused.slice(1)).toEqual([]);
    await kernel.close();
    await expectIntact({ project, server, dataDir, lost: "process" }, session);
  });

  test("[I/O error: sync] [S-047] what was refused because its sync failed is not in the log that a crash leaves", async () => {
    const { project, server, gates } = await scriptProject();
    const kernel = await openTestKernel({ on: { project, server } });
    const session = new ScriptedSession(kernel.client, gates);
    await session.create();
    await session.say("Say.");
    const [log = ""] = await findLogs(project);
    const before = await readFile(log);
    const stop = watchDisk(project.stateDir, {
      before({ kind, path }) {
        if (kind !== "sync" || path !== log) return;
        throw Object.assign(new Error("EIO: as the test wants it"), { code: "EIO" });
      },
    });
    await session.overlay("refused.txt");
    expect(session.refused).toMatchObject([{ error: { code: "storage_failed" } }]);
    expect((await readFile(log)).equals(before)).toBe(true);
    stop();
    await session.overlay("taken.txt");
    const text = await readFile(log, "utf8");
    expect(text).toContain("taken.txt");
    expect(text).not.toContain("refused.txt");
  });
});

/** False when the script makes fewer changes. */
async function strike({ code, strikes }: Failure, at: number, spell: number): Promise<boolean> {
  const { project, server, gates } = await scriptProject();
  const dataDir = join(project.home, "failing");
  mkdirSync(dataDir);
  let changes = 0;
  const struck: string[] = [];
  const stop = watchDisk(dataDir, {
    before({ kind, path }) {
      if (!strikes.has(kind)) return;
      changes += 1;
      if (changes <= at || changes > at + spell) return;
      struck.push(`${kind} ${path.slice(dataDir.length)}`);
      throw Object.assign(new Error(`${code}: as the test wants it, ${kind}`), { code });
    },
  });
  const kernel = await openTestKernel({ on: { project, server }, dataDir });
  const session = new ScriptedSession(kernel.client, gates);
  try {
    await session.play();
    stop();
    await session.say("Again.");
    await session.say("Again.");
    expect(session.lastEnd).toBe("run_completed");
    const events = session.sessionId && (await kernel.client.readEvents(session.sessionId));
    const refused = session.refused.map(({ what, error }) => [
      what,
      isCookieError(error) ? error.code : String(error),
    ]);
    expect(refused.filter(([, reason]) => !EXPECTED.has(String(reason)))).toEqual([]);
    const there = session.refused.filter(({ isIn }) => isIn(events ?? []));
    expect(there.map(({ what }) => what)).toEqual([]);
    await kernel.close();
    await expectIntact({ project, server, dataDir, lost: "process" }, session);
  } catch (error) {
    throw new Error(`${spell} times ${code} at change ${at + 1}: ${struck.join(", ")}`, {
      cause: error,
    });
  } finally {
    stop();
    await kernel.close();
  }
  return struck.length > 0;
}

/** False when less is changed. */
async function strikeStored(
  stored: StoredSession,
  {
    failure: { code, strikes },
    place,
    at,
    spell,
  }: {
    readonly failure: Failure;
    readonly place: "opening" | "recovery" | "removal";
    readonly at: number;
    readonly spell: number;
  },
): Promise<boolean> {
  const { sessionId: session_id, forkId } = stored;
  const { dataDir, log } = await stored.copy(`failing-${place}`);
  if (place === "recovery") await cutBefore(log, "approval_user_decision_recorded");
  const before = await readFile(log);
  if (place === "opening") await leaveAsCrashed(log);
  let changes = 0;
  const struck: string[] = [];
  const stop = watchDisk(dataDir, {
    before({ kind, path }) {
      if (!strikes.has(kind)) return;
      changes += 1;
      if (changes <= at || changes > at + spell) return;
      struck.push(`${kind} ${path.slice(dataDir.length)}`);
      throw Object.assign(new Error(`${code}: as the test wants it, ${kind}`), { code });
    },
  });
  const kernel = await stored.open(dataDir);
  const { client } = kernel;
  try {
    const listed = async () =>
      (await client.request(SessionList, {})).sessions.map((session) => session.session_id);
    // reading needs no change of the disk
    expect(await listed()).toContain(session_id);
    const events = await client.readEvents(session_id);
    const forked = await client.readEvents(forkId);
    const refused: unknown[] = [];
    const tried = (asked: Promise<unknown>) =>
      asked.catch((error: unknown) => void refused.push(error));
    await tried(client.request(SessionResume, { session_id }));
    if (place === "removal") await tried(client.request(SessionRemove, { session_id }));
    expect(refused.filter((error) => !isCookieError(error, "storage_failed"))).toEqual([]);
    stop();

    expect(await client.readEvents(forkId)).toEqual(forked);
    if ((await listed()).includes(session_id)) {
      expect((await readFile(log)).subarray(0, before.byteLength).equals(before)).toBe(true);
      const { end } = await kernel.run("Next.", { session: session_id });
      expect(end.type).toBe("run_completed");
      const after = await client.readEvents(session_id);
      expect(after.slice(0, events.length)).toEqual(events);
      expect(openEnds(after)).toEqual({ runs: [], calls: [] });
    } else expect(place).toBe("removal");
    if ((await listed()).includes(session_id)) await OPERATIONS.removal(kernel, session_id);
    else expect(await client.readEvents(session_id).catch(codeOf)).toBe("session_missing");
    if (place === "removal") await OPERATIONS.artifact(kernel, forkId);
  } catch (error) {
    const times = `${spell} times ${code} at change ${at + 1} of ${place}`;
    throw new Error(`${times}: ${struck.join(", ")}`, { cause: error });
  } finally {
    stop();
    await kernel.close();
    await rm(dataDir, { recursive: true });
  }
  return struck.length > 0;
}

/** As if the process had died before it wrote this event. */
async function cutBefore(log: string, type: string): Promise<void> {
  const lines = (await readFile(log, "utf8")).split(/(?<=\n)/);
  const at = lines.findIndex((line) => line.includes(`"${type}"`));
  await writeFile(log, lines.slice(0, at).join(""));
}

/** A torn line, a cache that cannot be read, one that is half made, and no lock file: opening puts all of it right. */
async function leaveAsCrashed(log: string): Promise<void> {
  const directory = dirname(log);
  await appendFile(log, '{"seq":');
  await writeFile(join(directory, "metadata"), "");
  await writeFile(join(directory, ".metadata.0123456789abcdef.tmp"), "half");
  await rm(join(directory, "owner.lock"));
}

const codeOf = (error: unknown) => (isCookieError(error) ? error.code : String(error));

/** What a request of the script may be told after a failure: that, or that its run is gone. */
const EXPECTED: ReadonlySet<string> = new Set(["storage_failed", "run_missing"]);
