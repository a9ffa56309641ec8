import { mkdirSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { isCookieError } from "@cookie-agent/sdk/protocol";
import { describe, expect, test } from "vitest";
import { openTestKernel } from "../support/open-test-kernel.ts";
import { findLogs } from "../support/session-log.ts";
import { expectIntact } from "./support/intact-session.ts";
import { scriptProject } from "./support/record-script.ts";
import { ScriptedSession } from "./support/scripted-session.ts";
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

/** What a request of the script may be told after a failure: that, or that its run is gone. */
const EXPECTED: ReadonlySet<string> = new Set(["storage_failed", "run_missing"]);
