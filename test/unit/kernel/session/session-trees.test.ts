import { appendFile, mkdir, readdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { RunSelection, SessionId, StoredEvent } from "@cookie-agent/sdk/protocol";
import { describe, expect, test } from "vitest";
import type { TreeConsumer } from "../../../../kernel/src/event/tree-consumer.ts";
import { SessionRegistry } from "../../../../kernel/src/session/session-registry.ts";
import type { SessionStore } from "../../../../kernel/src/store/session-store.ts";
import { createId } from "../../../../kernel/src/support/create-id.ts";
import { diagnostic, linesOf, RunScript } from "../event/event-fixtures.ts";
import { OFFLINE, openSessions } from "./session-fixture.ts";
import { publishChild, runToEnd } from "./tree-fixture.ts";

const selection = OFFLINE as unknown as RunSelection;

/** A root on disk, closed again, in a store that still holds its tree. */
async function openTree() {
  const first = await openSessions();
  const root = await first.sessions.create(selection);
  await runToEnd(root);
  await first.sessions.close();
  return { ...first, rootId: root.sessionId };
}

/** Counts how often each log is opened. */
function countOpenings(store: SessionStore) {
  const opened: SessionId[] = [];
  const counting: SessionStore = Object.assign(Object.create(store) as SessionStore, {
    open: (...[location, lease]: Parameters<SessionStore["open"]>) => {
      opened.push(location.sessionId);
      return store.open(location, lease);
    },
  });
  return { opened, store: counting };
}

/** Keeps the types of a session's events. */
function typesConsumer(accept?: TreeConsumer["accept"]): TreeConsumer<string[]> {
  return {
    begin() {
      const types: string[] = [];
      return {
        apply: (event: StoredEvent) => void types.push(event.payload.type),
        product: () => [...types],
      };
    },
    ...(accept && { accept }),
  };
}

describe("the load of a tree", () => {
  test("[S-077] [S-079] reads every log once, gives the consumers what they keep and opens nothing for writing", async () => {
    const { rootId, store, services } = await openTree();
    const run = new RunScript();
    const child = await publishChild(store, { rootId, drafts: [diagnostic()] });
    const drafts = [run.started(), run.input("deep"), run.completed()];
    const grandchild = await publishChild(store, { rootId, parentId: child, depth: 2, drafts });
    const counted = countOpenings(store);
    const types = typesConsumer();
    const sessions = new SessionRegistry({
      ...services,
      store: counted.store,
      treeConsumers: [types],
    });

    const [tree, ...others] = await Promise.all([1, 2, 3].map(() => sessions.tree(grandchild)));
    expect(others).toEqual([tree, tree]);
    expect(await sessions.tree(rootId)).toBe(tree);
    expect(counted.opened.sort()).toEqual([rootId, child, grandchild].sort());

    expect(tree?.sessionIds).toEqual([rootId, child, grandchild].sort());
    expect(tree?.childrenOf(rootId).map((meta) => meta.session_id)).toEqual([child]);
    expect(tree?.childrenOf(child)).toMatchObject([
      { session_id: grandchild, status: "completed" },
    ]);
    expect(tree?.productOf(types, child)).toEqual(["session_created", "plugin_diagnostic"]);
    expect(tree?.productOf(types, grandchild)?.at(-1)).toBe("run_completed");
    await expect(sessions.record(child, [])).rejects.toMatchObject({ code: "session_missing" });
    await sessions.close();
  });

  test("[S-078] a refusal fails the access, and the products are offered again without reading anew", async () => {
    const { rootId, store, services } = await openTree();
    const child = await publishChild(store, { rootId });
    const counted = countOpenings(store);
    let refusals = 1;
    const offered: unknown[] = [];
    const types = typesConsumer((tree) => {
      offered.push(tree.productOf(types, child));
      refusals -= 1;
      if (refusals >= 0) throw new Error("not now");
    });
    const sessions = new SessionRegistry({
      ...services,
      store: counted.store,
      treeConsumers: [types],
    });
    const refused = await Promise.allSettled([sessions.tree(rootId), sessions.tree(child)]);
    expect(refused.map(({ status }) => status)).toEqual(["rejected", "rejected"]);
    const tree = await sessions.tree(rootId);
    expect(tree.has(child)).toBe(true);
    expect(offered).toEqual([["session_created"], ["session_created"]]);
    expect(counted.opened).toHaveLength(2);
    await sessions.close();
  });

  test("[S-078] a refusal fails an adoption too, and it can be tried again", async () => {
    const { rootId, services, store } = await openTree();
    let refuse = true;
    const types = typesConsumer(() => {
      if (refuse) throw new Error("not now");
    });
    const sessions = new SessionRegistry({ ...services, treeConsumers: [types] });
    await expect(sessions.adopt(rootId)).rejects.toThrow("not now");
    expect(await store.access(rootId)).toBe("free");
    refuse = false;
    expect((await sessions.adopt(rootId)).writable).toBe(true);
    await sessions.close();
  });

  test("[S-077] what is open here is taken as it is, not read, and stays current", async () => {
    const { rootId, store, services } = await openTree();
    const child = await publishChild(store, { rootId });
    const counted = countOpenings(store);
    const types = typesConsumer();
    const sessions = new SessionRegistry({
      ...services,
      store: counted.store,
      treeConsumers: [types],
    });
    const root = await sessions.adopt(rootId);
    const actor = await sessions.adopt(child);
    const tree = await sessions.tree(rootId);
    expect(counted.opened).toEqual([rootId, child, child]);
    await actor.record([{ ...(diagnostic().payload as { type: "plugin_diagnostic" }) } as never]);
    expect(tree.meta(child)?.last_event_seq).toBe(2);
    expect(tree.productOf(types, child)).toEqual(["session_created", "plugin_diagnostic"]);
    expect(root.writable).toBe(true);
    await sessions.close();
  });

  test.for([
    ["is cut off in its first line", () => Buffer.from('{"session_id":')],
    ["is empty", () => Buffer.alloc(0)],
    [
      "is another session's",
      () => Buffer.from(`${linesOf(createId(), [diagnostic()]).join("\n")}\n`),
    ],
  ] as const)("a child whose log %s is named, and the others are there", async ([, bytes]) => {
    const { rootId, store, sessions: _, ...opened } = await openTree();
    const [broken, child] = [
      await publishChild(store, { rootId }),
      await publishChild(store, { rootId }),
    ];
    const below = await publishChild(store, { rootId, parentId: broken, depth: 2 });
    const log = join(store.directory, rootId, "subagents", broken, "events.jsonl");
    await writeFile(log, bytes());
    const sessions = new SessionRegistry(opened.services);
    const tree = await sessions.tree(rootId);
    expect(tree.sessionIds).toEqual([rootId, child, below].sort());
    expect(tree.diagnostics).toEqual([expect.stringContaining(broken)]);
    await expect(sessions.tree(broken)).rejects.toMatchObject({ code: "storage_failed" });
    await rm(log);
    await sessions.close();
  });

  test("[S-011] [S-012] only origins make a tree: what lies in it and comes from elsewhere is left out", async () => {
    const { rootId, store, services } = await openTree();
    const delegated = (depth: number, parent: SessionId, root = rootId) => ({
      type: "delegated" as const,
      root_session_id: root,
      parent_session_id: parent,
      parent_run_id: createId() as never,
      parent_tool_call_id: createId() as never,
      invocation_id: "i",
      depth,
    });
    const child = await publishChild(store, { rootId });
    const elsewhere = createId<SessionId>();
    const wrong = await Promise.all(
      [
        { type: "root" as const },
        delegated(1, elsewhere, elsewhere),
        delegated(2, rootId),
        delegated(1, child),
      ].map((origin) => publishChild(store, { rootId, origin })),
    );
    const [one, other] = [createId<SessionId>(), createId<SessionId>()];
    await publishChild(store, { rootId, sessionId: one, origin: delegated(2, other) });
    await publishChild(store, { rootId, sessionId: other, origin: delegated(3, one) });
    const sessions = new SessionRegistry(services);
    const tree = await sessions.tree(rootId);
    for (const sessionId of wrong) expect(tree.has(sessionId)).toBe(false);
    expect(tree.diagnostics).toHaveLength(wrong.length + 1);
    expect(tree.childrenOf(rootId).map((meta) => meta.session_id)).toEqual([child]);
    const depths = tree.sessionIds.map((sessionId) => tree.require(sessionId).origin);
    expect(depths.map((origin) => (origin.type === "root" ? 0 : origin.depth)).sort()).toEqual([
      0, 1, 3,
    ]);
    await sessions.close();
  });

  test("[S-080] a child that changes while it is folded is folded three times more at most, the last time under its lock", async () => {
    const { rootId, store, services } = await openTree();
    const child = await publishChild(store, { rootId });
    const path = join(store.directory, rootId, "subagents", child, "events.jsonl");
    let changes = 0;
    const changing: SessionStore = Object.assign(Object.create(store) as SessionStore, {
      open: async (...[location, lease]: Parameters<SessionStore["open"]>) => {
        const file = await store.open(location, lease);
        if (location.sessionId !== child || changes === allowed) return file;
        changes += 1;
        const [, line] = linesOf(child, [diagnostic(), ...Array(changes).fill(diagnostic())]).slice(
          -2,
        );
        await appendFile(path, `${line}\n`);
        return file;
      },
    });
    let allowed = 2;
    const types = typesConsumer();
    const open = () =>
      new SessionRegistry({ ...services, store: changing, treeConsumers: [types] });
    const calm = await open().tree(rootId);
    expect(calm.meta(child)?.last_event_seq).toBe(3);
    expect(changes).toBe(2);

    allowed = Number.POSITIVE_INFINITY;
    changes = 2;
    const restless = await open().tree(rootId);
    expect(changes).toBe(2 + 5);
    expect(restless.meta(child)?.last_event_seq).toBe(3 + 4);
  });

  test("a tree that is not held here is a fresh snapshot for each use", async () => {
    const { rootId, store, scenario } = await openTree();
    const child = await publishChild(store, { rootId });
    const reader = await openSessions({ scenario });
    const before = await reader.sessions.tree(rootId);
    const second = await publishChild(store, { rootId });
    expect(before.has(second)).toBe(false);
    const after = await reader.sessions.tree(rootId);
    expect(after.childrenOf(rootId).map((meta) => meta.session_id)).toEqual([child, second]);
  });
});

describe("handles of a tree", () => {
  test("[S-014] names the handles that are taken in the whole tree", async () => {
    const { rootId, store, services } = await openTree();
    const child = await publishChild(store, { rootId, handle: "explore_00000001" });
    await publishChild(store, { rootId, parentId: child, depth: 2, handle: "explore_00000002" });
    const sessions = new SessionRegistry(services);
    const tree = await sessions.tree(rootId);
    expect([...tree.handles()].sort()).toEqual([
      expect.stringMatching(/^default_[0-9a-f]{8}$/),
      "explore_00000001",
      "explore_00000002",
    ]);
    await sessions.close();
  });
});

describe("what happens to a loaded tree", () => {
  test("[S-077] a revert lets the consumers begin anew with what still counts", async () => {
    const { rootId, services } = await openTree();
    const types = typesConsumer();
    const sessions = new SessionRegistry({ ...services, treeConsumers: [types] });
    const root = await sessions.adopt(rootId);
    const tree = await sessions.tree(rootId);
    await root.revert(1);
    expect(tree.productOf(types, rootId)).toEqual(["session_created", "session_reverted"]);
    await sessions.close();
    const again = new SessionRegistry({ ...services, treeConsumers: [types] });
    const after = (await again.tree(rootId)).productOf(types, rootId);
    expect(after).toEqual(["session_created", "session_reverted"]);
    await again.close();
  });

  test("[S-090] the fork of a child takes its tree's lock, joins the tree and takes no handle that is taken", async () => {
    const { rootId, store, scenario } = await openTree();
    const run = new RunScript();
    const drafts = [run.started(), run.input("deep"), run.completed()];
    const child = await publishChild(store, { rootId, drafts, handle: "default_00000001" });
    await store.close();
    const { sessions, ...own } = await openSessions({ scenario });
    const fork = await sessions.fork(child, 3);
    expect(await own.store.access(rootId)).toBe("owned");
    const tree = await sessions.tree(rootId);
    expect(tree.childrenOf(rootId).map((meta) => meta.session_id)).toEqual([child, fork]);
    expect(tree.handles().size).toBe(3);
    expect(tree.require(fork).origin).toEqual(tree.require(child).origin);
    expect((await sessions.adopt(fork)).writable).toBe(true);
    const other = await openSessions({ scenario });
    await expect(other.sessions.fork(child, 3)).rejects.toMatchObject({ code: "session_foreign" });
    await sessions.close();
    await own.store.close();
  });
});

describe("removal", () => {
  test("takes the whole tree from the disk, what is open here of it too, and from then on it is missing", async () => {
    const { rootId, store, services } = await openTree();
    const child = await publishChild(store, { rootId });
    const sessions = new SessionRegistry(services);
    const actor = await sessions.adopt(child);
    await sessions.adopt(rootId);
    await expect(sessions.remove(child)).rejects.toMatchObject({ code: "not_root_session" });
    expect(await sessions.remove(rootId)).toEqual([rootId, child]);
    expect(actor.writable).toBe(false);
    await expect(actor.record([])).rejects.toBeDefined();
    await expect(sessions.adopt(child)).rejects.toMatchObject({ code: "session_missing" });
    await expect(sessions.remove(rootId)).rejects.toMatchObject({ code: "session_missing" });
    expect((await sessions.list()).sessions).toEqual([]);
    expect((await readdir(store.directory)).filter((name) => name.includes(rootId))).toEqual([]);
    await sessions.close();
  });

  test("a session in memory is dropped", async () => {
    const { sessions } = await openSessions();
    const { sessionId } = await sessions.create(selection);
    expect(await sessions.remove(sessionId)).toEqual([sessionId]);
    expect((await sessions.list()).sessions).toEqual([]);
    await sessions.close();
  });

  test("what an earlier removal left behind is deleted by the next, and nothing else", async () => {
    const { rootId, store, services } = await openTree();
    const sessions = new SessionRegistry(services);
    const other = await sessions.create(selection);
    await runToEnd(other);
    const left = join(store.directory, `.removed-${createId()}.00.tmp`);
    await mkdir(join(left, "subagents"), { recursive: true });
    await sessions.remove(rootId);
    expect(await readdir(store.directory)).not.toContain(left);
    expect((await sessions.list()).sessions.map((meta) => meta.session_id)).toEqual([
      other.sessionId,
    ]);
    await sessions.close();
  });

  test("[S-114] output that another tree refers to is kept among the shared", async () => {
    const { rootId, store, services } = await openTree();
    const { artifacts } = services.stages;
    const kept = await artifacts.put(rootId, Buffer.from("kept"));
    const gone = await artifacts.put(rootId, Buffer.from("gone"));
    const from_root = createId<SessionId>();
    await store.recordCrossReferences([
      { digest: kept.sha256, from_root, to_root: rootId, seq: 1 },
    ]);
    const sessions = new SessionRegistry(services);
    await sessions.remove(rootId);
    await (await artifacts.open(from_root, kept.sha256)).close();
    await expect(artifacts.open(from_root, gone.sha256)).rejects.toMatchObject({
      code: "artifact_missing",
    });
    await sessions.close();
  });
});
