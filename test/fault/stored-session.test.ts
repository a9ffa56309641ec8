import { mkdir, readFile, rename, rm, symlink, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import {
  type ClientKey,
  isCookieError,
  RunCancel,
  type RunId,
  SessionCompact,
  SessionFork,
  SessionList,
  SessionPermissionExplain,
  SessionPermissionSet,
  SessionRemove,
  SessionRename,
  SessionResume,
  SessionRevert,
  SessionSetPermissionMode,
} from "@cookie-agent/sdk/protocol";
import { describe, expect, test } from "vitest";
import type { TestKernel } from "../support/open-test-kernel.ts";
import { startKernelProcess } from "./support/kernel-process.ts";
import { ASKED_COMMAND } from "./support/scripted-session.ts";
import {
  LASTING,
  OPERATIONS,
  operateAll,
  readOutput,
  retainedIn,
  storedSession,
} from "./support/stored-session.ts";

const codeOf = (promise: Promise<unknown>) =>
  promise.then(
    () => "none",
    (error: unknown) => (isCookieError(error) ? error.code : String(error)),
  );

describe("a stored session", () => {
  test("[moved store: settings, grants, compaction, branch, removal] can do at another path, and behind a link, what it could before", async () => {
    const stored = await storedSession();
    const { dataDir } = await stored.copy("first");
    const moved = join(dirname(dataDir), "second");
    await rename(dataDir, moved);
    const kernel = await stored.open(moved);
    await operateAll(kernel, stored);
    await kernel.close();

    const { dataDir: target } = await stored.copy("third");
    const link = join(dirname(target), "link");
    await symlink(target, link);
    const linked = await stored.open(link);
    await operateAll(linked, stored);
    await linked.close();
  });

  test("[two processes: artifact, settings, grants, compaction, branch, removal] [S-091] of another process is read and forked, and nothing of it is changed", async () => {
    const stored = await storedSession();
    const { recording, sessionId: session_id } = stored;
    const { project } = recording;
    const { dataDir, log } = await stored.copy("shared");
    const holder = await startKernelProcess(project, undefined, dataDir);
    await holder.client.request(SessionResume, { session_id });
    const before = await readFile(log);
    const events = await holder.client.readEvents(session_id);

    const kernel = await stored.open(dataDir);
    const { client } = kernel;
    const through_seq = events.at(-1)?.seq ?? 0;
    const rule = { resource: "mine", effect: "deny" } as const;
    const change = { type: "set" as const, title: "Mine" };
    const tried = [
      client.request(SessionRename, { session_id, client_rename_id: "mine" as ClientKey, change }),
      client.request(SessionPermissionSet, { session_id, action: "write", ...rule }),
      client.request(SessionPermissionSet, { session_id, action: "bash", ...rule }),
      client.request(SessionCompact, { session_id, focus: null }),
      client.request(SessionRevert, { session_id, through_seq }),
      client.request(SessionRemove, { session_id }),
    ];
    expect(await Promise.all(tried.map(codeOf))).toEqual(tried.map(() => "session_foreign"));
    expect(await readFile(log)).toEqual(before);
    // what it printed can be read from a tree of our own, and so can what both store at the same time
    const fork = await client.request(SessionFork, { session_id, through_seq });
    const [uri] = retainedIn(events);
    expect(uri).toBeDefined();
    await OPERATIONS.artifact(kernel, fork.session_id);
    await OPERATIONS.removal(kernel, fork.session_id);
    expect(await holder.client.readEvents(session_id)).toEqual(events);

    // it lets go, and all of it is there
    await holder.client.request(SessionRename, {
      session_id,
      client_rename_id: "theirs" as ClientKey,
      change: { type: "set", title: "Theirs" },
    });
    holder.child.stdin?.end();
    await holder.gone;
    await operateAll(kernel, stored);
    await kernel.close();
  });

  test("[two processes: grants] [S-175] two at once take remembered answers back in one journal, and it stays whole", async () => {
    const stored = await storedSession();
    const { dataDir, log } = await stored.copy("shared");
    const journal = join(dirname(dirname(log)), "grant-invalidations.jsonl");
    const [one, other] = [await stored.open(dataDir), await stored.open(dataDir)];
    await one.client.request(SessionResume, { session_id: stored.sessionId });
    await other.client.request(SessionResume, { session_id: stored.forkId });
    for (let round = 0; round < 3; round += 1) {
      await Promise.all([
        OPERATIONS.grants(one, stored.sessionId),
        OPERATIONS.grants(other, stored.forkId),
      ]);
    }
    const records = (await readFile(journal, "utf8")).trimEnd().split("\n");
    const seqs = records.map((record) => (JSON.parse(record) as { seq: number }).seq);
    expect(seqs).toEqual(seqs.map((_, index) => index + 1));
    expect(seqs).toHaveLength(7);
    await Promise.all([one.close(), other.close()]);
  });

  describe("of which something is gone", () => {
    const losses: readonly {
      readonly name: string;
      readonly lose: (log: string) => Promise<unknown>;
    }[] = [
      {
        name: "its caches",
        lose: async (log) => {
          const directory = dirname(log);
          await rm(join(directory, "metadata"));
          await writeFile(join(directory, ".metadata.0123456789abcdef.tmp"), "half");
        },
      },
      {
        name: "a folder in the place of its caches",
        lose: async (log) => {
          await rm(join(dirname(log), "metadata"));
          await mkdir(join(dirname(log), "metadata"));
        },
      },
      {
        name: "the lock file",
        lose: (log) => rm(join(dirname(log), "owner.lock"), { force: true }),
      },
    ];

    test.for(losses)(
      "[storage gone: metadata, settings, grants, compaction, branch, removal] $name: it goes on",
      async ({ lose }) => {
        const stored = await storedSession();
        const { dataDir, log } = await stored.copy("lost");
        await lose(log);
        const kernel = await stored.open(dataDir);
        await operateAll(kernel, stored);
        await kernel.close();
      },
    );

    test("[storage gone: artifact] [S-106] its output: reading it fails as a call, and what is printed next is kept", async () => {
      const stored = await storedSession();
      const { dataDir, log } = await stored.copy("lost");
      await rm(join(dirname(log), "artifacts"), { recursive: true });
      const kernel = await stored.open(dataDir);
      const events = await kernel.client.readEvents(stored.sessionId);
      const { sessionId } = stored;
      const [lost = ""] = retainedIn(events);
      expect(await readOutput(kernel, sessionId, lost)).toBe("artifact_missing");
      const mode = { session_id: sessionId, mode: "yolo" as const };
      await kernel.client.request(SessionSetPermissionMode, mode);
      await kernel.run("Print.", { session: sessionId });
      const [kept = ""] = retainedIn(await kernel.client.readEvents(sessionId)).slice(-1);
      expect(kept).not.toBe(lost);
      expect(await readOutput(kernel, sessionId, kept)).toBe("completed");
      await OPERATIONS.removal(kernel, sessionId);
      await kernel.close();
    });

    test("[storage gone: recovery] its caches and its output after a crash: it is settled all the same", async () => {
      const stored = await storedSession();
      const { dataDir, log } = await stored.copy("crashed");
      const lines = (await readFile(log, "utf8")).split(/(?<=\n)/);
      const at = lines.findIndex((line) => line.includes('"approval_user_decision_recorded"'));
      await writeFile(log, lines.slice(0, at).join(""));
      await rm(join(dirname(log), "artifacts"), { recursive: true });
      await rm(join(dirname(log), "metadata"));
      const kernel = await stored.open(dataDir);
      const { end, events } = await kernel.run("Next.", { session: stored.sessionId });
      expect(end.type).toBe("run_completed");
      expect(events.length).toBeGreaterThan(3);
      const all = await kernel.client.readEvents(stored.sessionId);
      expect(all.map(({ seq }) => seq)).toEqual(all.map((_, index) => index + 1));
      expect(all.some(({ payload }) => payload.type === "run_interrupted")).toBe(true);
      await kernel.close();
    });

    test.for(LASTING.filter((operation) => operation !== "artifact"))(
      "[storage gone: settings, grants, compaction, branch, removal] all of it while it is open: %s says so, and another session works",
      async (operation) => {
        const stored = await storedSession();
        const { sessionId } = stored;
        const { dataDir, log } = await stored.copy("lost");
        const kernel = await stored.open(dataDir);
        await kernel.client.request(SessionResume, { session_id: sessionId });
        await rm(dirname(log), { recursive: true });
        const code = await codeOf(OPERATIONS[operation](kernel, sessionId));
        expect(["storage_failed", "session_missing"]).toContain(code);
        expect(["storage_failed", "session_missing"]).toContain(
          await codeOf(kernel.client.request(SessionRemove, { session_id: sessionId })),
        );
        expect((await kernel.run("Next.")).end.type).toBe("run_completed");
        const { diagnostics } = await kernel.client.request(SessionList, {});
        expect(diagnostics).toEqual([]);
        await kernel.close();
      },
    );
  });

  test.for([
    ["cut off", (text: string) => text.slice(0, -20), true],
    ["with NUL bytes", (text: string) => `${"\0".repeat(64)}\n${text}`, false],
    ["doubled", (text: string) => text + text, false],
  ] as const)(
    "[damaged log: grants] [S-057] [S-175] whose journal of remembered answers is %s asks again, and all else goes on",
    async ([, damage, isTorn]) => {
      const stored = await storedSession();
      const { sessionId: session_id } = stored;
      const { dataDir, log } = await stored.copy("damaged");
      const journal = join(dirname(dirname(log)), "grant-invalidations.jsonl");
      const damaged = damage(await readFile(journal, "utf8"));
      await writeFile(journal, damaged);
      const kernel: TestKernel = await stored.open(dataDir);
      await kernel.client.request(SessionResume, { session_id });
      const isSettled = codeOf(OPERATIONS.grants(kernel, session_id));
      if (isTorn) expect(await isSettled).toBe("none");
      else {
        expect(await isSettled).toBe("storage_failed");
        const call = { tool: "bash", arguments: { command: ASKED_COMMAND } };
        const asked = await kernel.client.request(SessionPermissionExplain, {
          session_id,
          ...call,
        });
        expect(asked.explanation.tree_grant_id).toBeUndefined();
        expect(await readFile(journal, "utf8")).toBe(damaged);
        // the call still waits for an answer that can be given
        const events = await kernel.client.readEvents(session_id);
        const run_id = events.at(-1)?.run_id as RunId;
        await kernel.client.request(RunCancel, { run_id });
        const watch = kernel.watch(session_id, { cursor: events.at(-1)?.seq ?? 0 });
        expect((await watch.end(run_id)).type).toBe("run_cancelled");
      }
      for (const operation of ["settings", "compaction", "branch", "removal"] as const) {
        await OPERATIONS[operation](kernel, session_id);
      }
      await kernel.close();
    },
  );
});
