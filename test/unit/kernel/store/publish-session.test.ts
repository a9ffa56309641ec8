import type * as files from "node:fs/promises";
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { SessionId } from "@cookie-agent/sdk/protocol";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import {
  type PublicationSteps,
  publishSession,
} from "../../../../kernel/src/store/publish-session.ts";
import { createId } from "../../../../kernel/src/support/create-id.ts";
import { metadataOf } from "../event/event-fixtures.ts";
import { diskTrace } from "../support/traced-disk.ts";

vi.mock("node:fs/promises", async (original) => {
  const { traceDisk } = await import("../support/traced-disk.ts");
  return traceDisk(await original<typeof files>());
});

let parent = "";
const sessionId = createId<SessionId>();
const publication = {
  sessionId,
  rootId: sessionId,
  bytes: Buffer.from("a line\n"),
  metadata: metadataOf(sessionId),
};
const lease = { rootId: sessionId, held: true, release: () => undefined };

beforeEach(async () => {
  parent = await mkdtemp(join(tmpdir(), "publish-"));
});

afterEach(() => rm(parent, { recursive: true }));

function steps(changes: Partial<PublicationSteps> = {}): PublicationSteps {
  return { target: join(parent, sessionId), merge: false, lock: async () => lease, ...changes };
}

test("[S-024] the lock is taken before anything of the session is there, and before it can be seen", async () => {
  let seen: string[] = [];
  const lock = async (staged: string) => {
    seen = [...(await readdir(parent)), ...(await readdir(staged))];
    return lease;
  };
  const file = await publishSession(publication, steps({ lock }));
  await file.close();
  expect(seen).toEqual([expect.stringMatching(new RegExp(`^\\.${sessionId}\\..*\\.tmp$`))]);
  expect(await readdir(parent)).toEqual([sessionId]);
});

test("[S-026] a lock that is refused leaves no file", async () => {
  const lock = async () => Promise.reject(new Error("foreign"));
  await expect(publishSession(publication, steps({ lock }))).rejects.toThrow("foreign");
  expect(await readdir(parent)).toEqual([]);
});

test("[S-026] a rename that fails leaves no file", async () => {
  const target = join(parent, sessionId);
  await mkdir(target);
  await writeFile(join(target, "other"), "");
  await expect(publishSession(publication, steps())).rejects.toThrow();
  expect(await readdir(parent, { recursive: true })).toEqual([sessionId, `${sessionId}/other`]);
});

test("[S-026] a root that cannot join its children leaves them as they were", async () => {
  const target = join(parent, sessionId);
  await mkdir(join(target, "metadata", "in-the-way"), { recursive: true });
  await mkdir(join(target, "subagents"));
  await expect(publishSession(publication, steps({ merge: true }))).rejects.toThrow();
  expect((await readdir(target)).sort()).toEqual(["metadata", "subagents"]);
  expect(await readdir(parent)).toEqual([sessionId]);
});

test("[S-024] the published log is open for writing behind its first events", async () => {
  const file = await publishSession(publication, steps());
  await file.append(Buffer.from("next\n"));
  await file.close();
  expect(await readFile(join(parent, sessionId, "events.jsonl"), "utf8")).toBe("a line\nnext\n");
});

test("[S-024] the log and its folder are durable before the session is in its place, the place after it", async () => {
  diskTrace.length = 0;
  const file = await publishSession(publication, steps());
  await file.close();
  expect(diskTrace).toEqual([
    expect.stringMatching(/^sync .*\.tmp\/events\.jsonl$/),
    expect.stringMatching(/^sync .*\.tmp$/),
    `rename ${join(parent, sessionId)}`,
    `sync ${parent}`,
  ]);
});

test("[S-024] a root that joins its children is durable in their folder", async () => {
  const target = join(parent, sessionId);
  await mkdir(join(target, "subagents"), { recursive: true });
  diskTrace.length = 0;
  const file = await publishSession(publication, steps({ merge: true }));
  await file.close();
  expect(diskTrace.slice(2)).toEqual([
    `rename ${join(target, "events.jsonl")}`,
    `rename ${join(target, "metadata")}`,
    `sync ${target}`,
    `sync ${parent}`,
  ]);
});
