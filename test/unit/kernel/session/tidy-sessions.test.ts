import { chmod, mkdir, readdir, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { ClientKey, Digest, RunSelection, SessionId } from "@cookie-agent/sdk/protocol";
import { describe, expect, test } from "vitest";
import { createLocalArtifactStore } from "../../../../kernel/src/artifact/local-artifact-store.ts";
import type { SessionActor } from "../../../../kernel/src/session/session-actor.ts";
import { SessionRegistry } from "../../../../kernel/src/session/session-registry.ts";
import { createId } from "../../../../kernel/src/support/create-id.ts";
import { draft, RunScript } from "../event/event-fixtures.ts";
import { OFFLINE, openSessions } from "./session-fixture.ts";
import { publishChild, runToEnd } from "./tree-fixture.ts";

const selection = OFFLINE as unknown as RunSelection;
const HOUR_MS = 3_600_000;

async function openRoot() {
  const opened = await openSessions();
  const root = await opened.sessions.create(selection);
  await runToEnd(root);
  return { ...opened, root, rootId: root.sessionId };
}

/** Stores content with a tree as a process did that is gone, three hours ago. */
async function putOld(storeDir: string, rootId: SessionId, text: string): Promise<Digest> {
  const before = createLocalArtifactStore({ storeDir });
  const { sha256 } = await before.put(rootId, Buffer.from(text));
  const directory = join(
    storeDir,
    (await before.locate(rootId, new Set([sha256]))).get(sha256) ?? "",
  );
  const then = new Date(Date.now() - 3 * HOUR_MS);
  await utimes(join(directory, "artifacts", sha256), then, then).catch(() =>
    utimes(join(storeDir, "artifacts.shared", sha256), then, then),
  );
  return sha256;
}

const overlay = (digest: Digest) =>
  draft({
    type: "session_permission_overlay_set",
    overlay: { rules: [{ action: "read", resource: digest, effect: "allow", source: "user" }] },
  });

describe("[S-110] old output of a tree", () => {
  test("goes when no log of root or children and no other tree names it", async () => {
    const { sessions, store, root, rootId } = await openRoot();
    const [byRoot, byChild, byOther, byNobody] = [
      await putOld(store.directory, rootId, "root"),
      await putOld(store.directory, rootId, "child"),
      await putOld(store.directory, rootId, "other"),
      await putOld(store.directory, rootId, "nobody"),
    ];
    await root.setOverlayRule({
      action: "read",
      resource: byRoot,
      effect: "allow",
      source: "user",
    });
    await publishChild(store, { rootId, drafts: [overlay(byChild)] });
    const from_root = createId<SessionId>();
    await store.recordCrossReferences([{ digest: byOther, from_root, to_root: rootId, seq: 2 }]);
    await sessions.tidy();
    const left = await readdir(join(store.directory, rootId, "artifacts"));
    expect(left.sort()).toEqual([byRoot, byChild, byOther].sort());
    expect(left).not.toContain(byNobody);
    await sessions.close();
  });

  test("what a revert hides, and what stands on a damaged line, still counts", async () => {
    const { sessions, store, root, rootId, services } = await openRoot();
    const [hidden, damaged] = [
      await putOld(store.directory, rootId, "hidden"),
      await putOld(store.directory, rootId, "damaged"),
    ];
    await root.setOverlayRule({
      action: "read",
      resource: hidden,
      effect: "allow",
      source: "user",
    });
    await root.revert(1);
    await sessions.close();
    const log = join(store.directory, rootId, "events.jsonl");
    await writeFile(log, `{"half":"artifact://sha256/${damaged}\n`, { flag: "a" });
    const again = new SessionRegistry(services);
    await again.adopt(rootId);
    await again.tidy();
    expect(await readdir(join(store.directory, rootId, "artifacts"))).toHaveLength(2);
    await again.close();
  });

  test("[S-111] stays with a tree that is not loaded, or that another process holds", async () => {
    const { sessions, store, rootId, scenario } = await openRoot();
    const digest = await putOld(store.directory, rootId, "theirs");
    const other = await openSessions({ scenario });
    const mine = await other.sessions.create(selection);
    await runToEnd(mine);
    await other.sessions.read(rootId, (actor) => actor.meta());
    await other.sessions.tree(rootId);
    await other.sessions.tidy();
    expect(await readdir(join(store.directory, rootId, "artifacts"))).toEqual([digest]);
    await sessions.close();
    await store.close();
    await other.sessions.tidy();
    expect(await readdir(join(store.directory, rootId, "artifacts"))).toEqual([digest]);
    await other.sessions.adopt(rootId);
    await other.sessions.tidy();
    expect(await readdir(join(store.directory, rootId, "artifacts"))).toEqual([]);
    await other.sessions.close();
  });

  test("[S-111] shared output stays until every root of the store is loaded here", async () => {
    const { sessions, store, rootId, scenario, services } = await openRoot();
    const digest = await putOld(store.directory, createId<SessionId>(), "unplaced");
    const second = await openSessions({ scenario });
    const other = await second.sessions.create(selection);
    await runToEnd(other);
    await sessions.tidy();
    const shared = join(store.directory, "artifacts.shared");
    expect(await readdir(shared)).toEqual([digest]);
    await second.sessions.close();
    await second.store.close();
    await sessions.adopt(other.sessionId);
    await services.stages.artifacts.put(rootId, Buffer.from("else"));
    await sessions.tidy();
    expect(await readdir(shared)).toEqual([]);
    await sessions.close();
  });

  test.skipIf(process.getuid?.() === 0)(
    "a log that cannot be read keeps all of its tree",
    async () => {
      const { sessions, store, rootId } = await openRoot();
      const digest = await putOld(store.directory, rootId, "old");
      const child = await publishChild(store, { rootId });
      await chmod(join(store.directory, rootId, "subagents", child, "events.jsonl"), 0o000);
      await sessions.tidy();
      expect(await readdir(join(store.directory, rootId, "artifacts"))).toEqual([digest]);
      await sessions.close();
    },
  );

  test("a child without a log keeps all of its tree", async () => {
    const { sessions, store, rootId } = await openRoot();
    const digest = await putOld(store.directory, rootId, "old");
    await mkdir(join(store.directory, rootId, "subagents", createId()), { recursive: true });
    await sessions.tidy();
    expect(await readdir(join(store.directory, rootId, "artifacts"))).toEqual([digest]);
    await sessions.close();
  });
});

describe("[S-114] a fork", () => {
  test("[S-232] has what it refers to in the source's tree entered in the ledger, before it is there", async () => {
    const { sessions, store, root, rootId, services } = await openRoot();
    const digest = await putOld(store.directory, rootId, "output");
    await root.setOverlayRule({
      action: "read",
      resource: digest,
      effect: "allow",
      source: "user",
    });
    const through = root.meta().last_event_seq;
    const published: number[] = [];
    const watching = Object.assign(Object.create(store) as typeof store, {
      publish: async (...given: Parameters<typeof store.publish>) => {
        published.push((await store.crossReferences()).length);
        return store.publish(...given);
      },
    });
    await sessions.close();
    const again = new SessionRegistry({ ...services, store: watching });
    const fork = await again.fork(rootId, through);
    expect(await store.crossReferences()).toEqual([
      { digest, from_root: fork, to_root: rootId, seq: through },
    ]);
    expect(published).toEqual([1]);
    await again.close();
  });
});

describe("putting children away", () => {
  /** Children that ended a run, all of them open. */
  async function openChildren(count: number, config: { max: number; idleMs: number }) {
    const opened = await openRoot();
    const { store, rootId, services, sessions: before } = opened;
    await before.close();
    const { config: given } = services.facts;
    const delegation = {
      ...given.delegation,
      maxResidentSubagents: config.max,
      idleEvictionAfterMs: config.idleMs,
    };
    const facts = { ...services.facts, config: { ...given, delegation } };
    const sessions = new SessionRegistry({ ...services, facts });
    const children: SessionId[] = [];
    for (let n = 0; n < count; n += 1) {
      const run = new RunScript();
      const drafts = [run.started(), run.input(`task ${n}`), run.completed()];
      children.push(await publishChild(store, { rootId, drafts }));
    }
    const actors = await Promise.all(children.map((child) => sessions.adopt(child)));
    return { ...opened, sessions, children, actors };
  }

  test("[S-103] cuts its subscribers with a gap; the next use opens it anew with the mode it had", async () => {
    const { sessions, store, rootId, children, actors } = await openChildren(2, {
      max: 1,
      idleMs: 0,
    });
    const [first, second] = actors;
    first?.setMode("yolo");
    const { tail } = (await first?.subscribe({ cursor: 0 })) ?? {};
    await second?.setOverlayRule({ action: "bash", resource: "*", effect: "ask", source: "user" });
    await sessions.tidy();
    const items = [];
    for await (const item of tail ?? []) items.push(item);
    expect(items).toEqual([{ gap: 4 }]);
    expect(first?.writable).toBe(false);
    expect(second?.writable).toBe(true);
    expect(await store.access(rootId)).toBe("owned");
    expect((await sessions.tree(rootId)).meta(children[0] as SessionId)?.status).toBe("completed");

    const mode = await sessions.read(children[0] as SessionId, (actor) => actor.mode);
    expect(mode).toBe("yolo");
    const again = await sessions.adopt(children[0] as SessionId);
    expect(again).not.toBe(first);
    expect(again.writable).toBe(true);
    await sessions.close();
  });

  test("[S-100] leaves alone a root, what never ran, and what a command waits for", async () => {
    const { sessions, store, rootId, actors } = await openChildren(1, { max: 0, idleMs: 0 });
    const root = await sessions.adopt(rootId);
    const fresh = await sessions.adopt(await publishChild(store, { rootId }));
    const [busy] = actors as [SessionActor];
    const commands = Array.from({ length: 3 }, (_, n) =>
      busy.setOverlayRule({ action: "bash", resource: `x${n}`, effect: "ask", source: "user" }),
    );
    await sessions.tidy();
    await Promise.all(commands);
    expect([root, fresh, busy].map((actor) => actor.writable)).toEqual([true, true, true]);
    expect(busy.permissions()).toBeDefined();
    await sessions.close();
  });

  test("[S-102] leaves alone what runs, and what has an input that waits", async () => {
    const { sessions, store, rootId, actors } = await openChildren(1, { max: 0, idleMs: 0 });
    const [running] = actors as [SessionActor];
    const run = new RunScript();
    const waits = { ...draft({ type: "user_input_admitted", input: "later" }), runId: null };
    const drafts = [run.started(), run.input(), run.completed(), waits];
    const waiting = await sessions.adopt(await publishChild(store, { rootId, drafts }));
    await running.startRun({
      clientRunId: createId() as unknown as ClientKey,
      selection,
      input: "say hello",
      maxTurns: null,
    });
    expect([running, waiting].map(({ idleSinceMs }) => idleSinceMs)).toEqual([null, null]);
    await expect.poll(() => running.idleSinceMs, { timeout: 20_000 }).not.toBeNull();
    await sessions.tidy();
    expect([running, waiting].map(({ writable }) => writable)).toEqual([false, true]);
    await sessions.close();
  });

  test("[S-103] no command is lost: each is recorded, whoever serves it", async () => {
    const { sessions, children } = await openChildren(1, { max: 0, idleMs: 0 });
    const [child] = children as [SessionId];
    const said = [];
    for (let n = 0; n < 30; n += 1) {
      said.push(
        sessions.adopt(child).then((actor) =>
          actor.setOverlayRule({
            action: "bash",
            resource: `c${n}`,
            effect: "ask",
            source: "user",
          }),
        ),
      );
      if (n % 5 === 0) await sessions.tidy();
    }
    await Promise.all(said);
    const rules = await sessions.read(child, (actor) =>
      actor.permissions().flatMap(({ patterns }) => patterns.map(({ resource }) => resource)),
    );
    for (let n = 0; n < 30; n += 1) expect(rules).toContain(`c${n}`);
    await sessions.close();
  });

  test("[S-101] waits for the time that a child has to be idle", async () => {
    const { sessions, actors } = await openChildren(1, { max: 0, idleMs: HOUR_MS });
    const [actor] = actors;
    const endedMs = actor?.idleSinceMs ?? Number.NaN;
    await sessions.tidy(endedMs + HOUR_MS - 1);
    expect(actor?.writable).toBe(true);
    await sessions.tidy(endedMs + HOUR_MS);
    expect(actor?.writable).toBe(false);
    await sessions.close();
  });
});
