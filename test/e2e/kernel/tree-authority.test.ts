import { chown, mkdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { SessionGet, SessionResume, SessionTree } from "@cookie-agent/sdk/protocol";
import { describe, expect, test } from "vitest";
import { openTestKernel } from "../../support/open-test-kernel.ts";
import { findLogs } from "../../support/session-log.ts";
import { storeChild } from "../../support/stored-child.ts";

const FOREIGN = { code: "session_foreign" };

async function storeSession() {
  const first = await openTestKernel({ answers: [{ text: "done" }] });
  const { sessionId } = await first.run("Hi");
  await first.close();
  const [log = ""] = await findLogs(first.project);
  return { first, sessionId, lock: join(dirname(log), "owner.lock") };
}

describe.skipIf(process.platform === "win32")("[S-092] a lock that cannot be judged", () => {
  test.for([
    ["a link", (lock: string) => symlink(`${lock}.elsewhere`, lock)],
    ["a directory", (lock: string) => mkdir(lock)],
  ] as const)(
    "such as %s counts as another process's; the session can be read",
    async ([, put]) => {
      const { first, sessionId: session_id, lock } = await storeSession();
      await writeFile(`${lock}.elsewhere`, "mine");
      await rm(lock);
      await put(lock);
      const { client } = await openTestKernel({ on: first });
      await expect(client.request(SessionResume, { session_id })).rejects.toMatchObject(FOREIGN);
      expect((await client.request(SessionGet, { session_id })).session.access).toBe("foreign");
      expect(await readFile(`${lock}.elsewhere`, "utf8")).toBe("mine");
    },
  );

  test.skipIf(process.getuid?.() !== 0)("such as another user's counts as foreign", async () => {
    const { first, sessionId: session_id, lock } = await storeSession();
    await chown(lock, 12_345, 12_345);
    const { client } = await openTestKernel({ on: first });
    await expect(client.request(SessionResume, { session_id })).rejects.toMatchObject(FOREIGN);
  });
});

describe("several kernels in one process", () => {
  test("[S-082] each project's trees are its own, and one tree is held once", async () => {
    const [one, other] = [await storeSession(), await storeSession()];
    const mine = await openTestKernel({ on: one.first });
    const rival = await openTestKernel({ on: one.first });
    const beside = await openTestKernel({ on: other.first });
    await mine.client.request(SessionResume, { session_id: one.sessionId });
    await expect(
      rival.client.request(SessionResume, { session_id: one.sessionId }),
    ).rejects.toMatchObject(FOREIGN);
    const { session } = await beside.client.request(SessionResume, { session_id: other.sessionId });
    expect(session.access).toBe("owned");
    await expect(
      beside.client.request(SessionGet, { session_id: one.sessionId }),
    ).rejects.toMatchObject({ code: "session_missing" });
  });

  test("[S-086] a root whose tree is held through a child is adopted at its own first use, without a second lock", async () => {
    const { first, sessionId } = await storeSession();
    const child = await storeChild(first.project, sessionId);
    const { client } = await openTestKernel({ on: first });
    await client.request(SessionResume, { session_id: child.sessionId });
    const { session } = await client.request(SessionResume, { session_id: sessionId });
    expect(session.access).toBe("owned");
    const { tree } = await client.request(SessionTree, { session_id: sessionId });
    expect(tree.children.map((node) => node.session.access)).toEqual(["owned"]);
  });
});
