import { writeFile } from "node:fs/promises";
import {
  SessionChildren,
  SessionGet,
  SessionResume,
  SessionTree,
} from "@cookie-agent/sdk/protocol";
import { describe, expect, test } from "vitest";
import { openTestKernel } from "../../support/open-test-kernel.ts";
import { newSessionId, storeChild } from "../../support/stored-child.ts";

/** A root with two children, one of which has a child, in a store that nobody holds. */
async function storeTree() {
  const first = await openTestKernel({ answers: [{ text: "done" }] });
  const { sessionId: rootId } = await first.run("Delegate");
  await first.close();
  const { project } = first;
  const one = await storeChild(project, rootId);
  const below = await storeChild(project, rootId, { parentId: one.sessionId, depth: 2 });
  const other = await storeChild(project, rootId);
  return { first, rootId, one, below, other };
}

describe("session.tree and session.children", () => {
  test("[S-011] show the whole tree from any place in it, and take no lock", async () => {
    const { first, rootId, one, below, other } = await storeTree();
    const { client } = await openTestKernel({ on: first });
    const whole = await client.request(SessionTree, { session_id: rootId });
    expect(whole).toMatchObject({
      diagnostics: [],
      tree: {
        session: { session_id: rootId, origin: { type: "root" }, access: "free" },
        children: [
          {
            session: { session_id: one.sessionId, status: "completed" },
            children: [{ session: { session_id: below.sessionId }, children: [] }],
          },
          { session: { session_id: other.sessionId }, children: [] },
        ],
      },
    });
    const part = await client.request(SessionTree, { session_id: one.sessionId });
    expect(part.tree).toEqual(whole.tree.children[0]);
    const { children } = await client.request(SessionChildren, { session_id: rootId });
    expect(children).toMatchObject([
      {
        session_id: one.sessionId,
        agent: "primary",
        status: "completed",
        usage: { request_count: 1, by_model: { "custom.test/scripted": { request_count: 1 } } },
      },
      { session_id: other.sessionId },
    ]);
    const second = await openTestKernel({ on: first });
    const { session } = await second.client.request(SessionResume, { session_id: rootId });
    expect(session.access).toBe("owned");
  });

  test("a child that cannot be read is named, what lies below it too, and the rest is shown", async () => {
    const { first, rootId, one, below, other } = await storeTree();
    await writeFile(one.log, "no log\n");
    const { client } = await openTestKernel({ on: first });
    const { tree, diagnostics } = await client.request(SessionTree, { session_id: rootId });
    expect(tree.children.map(({ session }) => session.session_id)).toEqual([other.sessionId]);
    expect(diagnostics).toEqual([
      expect.stringContaining(one.sessionId),
      expect.stringContaining(below.sessionId),
    ]);
    await expect(client.request(SessionTree, { session_id: one.sessionId })).rejects.toMatchObject({
      code: "storage_failed",
    });
  });

  test("an unknown session is missing, one in memory is a tree of its own", async () => {
    const kernel = await openTestKernel();
    await expect(
      kernel.client.request(SessionTree, { session_id: newSessionId() }),
    ).rejects.toMatchObject({ code: "session_missing" });
    const session_id = await kernel.createSession();
    const { tree } = await kernel.client.request(SessionTree, { session_id });
    expect(tree).toMatchObject({ session: { session_id }, children: [] });
  });
});

describe("adoption through a child", () => {
  test("[S-086] holds the tree and leaves the root as the crash left it, until it is used itself", async () => {
    const { first, rootId, one, other } = await storeTree();
    const { client } = await openTestKernel({ on: first });
    const before = await client.request(SessionGet, { session_id: rootId });
    await client.request(SessionResume, { session_id: one.sessionId });
    const second = await openTestKernel({ on: first });
    for (const session_id of [rootId, other.sessionId, one.sessionId]) {
      await expect(second.client.request(SessionResume, { session_id })).rejects.toMatchObject({
        code: "session_foreign",
      });
    }
    const after = await client.request(SessionGet, { session_id: rootId });
    expect(after.session.last_event_seq).toBe(before.session.last_event_seq);
  });
});
