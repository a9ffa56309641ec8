import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { SessionId, StoredEvent } from "@cookie-agent/sdk/protocol";
import { afterEach, beforeEach, expect, test } from "vitest";
import { EventLog } from "../../../../kernel/src/event/event-log.ts";
import { GroupCommit } from "../../../../kernel/src/event/group-commit.ts";
import { openLocalSessionStore } from "../../../../kernel/src/store/local-session-store.ts";
import type { SessionStore } from "../../../../kernel/src/store/session-store.ts";
import { createId } from "../../../../kernel/src/support/create-id.ts";
import { diagnostic, metadataOf, RunScript, sessionCreated } from "./event-fixtures.ts";

let home = "";
const stores: SessionStore[] = [];
const sessionId = createId<SessionId>();
const location = { sessionId, rootId: sessionId };

beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), "stored-"));
});

afterEach(async () => {
  for (const store of stores.splice(0)) await store.close();
  await rm(home, { recursive: true });
});

async function openStore(): Promise<SessionStore> {
  const store = await openLocalSessionStore({ sessionsDir: join(home, "sessions"), cwd: "/w" });
  stores.push(store);
  return store;
}

function optionsOf(store: SessionStore) {
  const seqs: number[] = [];
  return {
    seqs,
    sessionId,
    rootId: sessionId,
    store,
    sync: new GroupCommit(),
    observer: {
      apply: (event: StoredEvent) => void seqs.push(event.seq),
      restart: () => void seqs.splice(0),
    },
    metadata: () => metadataOf(sessionId),
  };
}

test("[S-023] [S-083] [S-084] a session lives on disk from its first message, and in the next process", async () => {
  const store = await openStore();
  const log = EventLog.create(optionsOf(store));
  const run = new RunScript();
  await log.append([sessionCreated()]);
  expect(await store.find(sessionId)).toBeUndefined();
  await log.append([run.started(), run.input()]);
  expect(await store.find(sessionId)).toEqual(location);

  const elsewhere = await openStore();
  expect(await elsewhere.acquire(sessionId)).toBeUndefined();
  const foreign = optionsOf(elsewhere);
  const reader = await EventLog.open({ ...foreign, location });
  expect([foreign.seqs, reader.writable]).toEqual([[1, 2, 3], false]);
  await reader.close();

  await log.append([run.interrupted()]);
  await log.close();
  expect(await elsewhere.acquire(sessionId)).toBeUndefined();
  await store.close();
  const lease = await elsewhere.acquire(sessionId);
  if (lease === undefined) throw new Error("the tree is not free");
  const adopted = optionsOf(elsewhere);
  const writer = await EventLog.open({ ...adopted, location, lease });
  await writer.append([diagnostic()]);
  expect(adopted.seqs).toEqual([1, 2, 3, 4, 5]);
  await writer.close();
});

test("[S-088] releasing a tree stops every log of it, the newly opened one not", async () => {
  const store = await openStore();
  const log = EventLog.create(optionsOf(store));
  const run = new RunScript();
  await log.append([sessionCreated(), run.started(), run.input()]);
  (await store.acquire(sessionId))?.release();
  await expect(log.append([run.interrupted()])).rejects.toMatchObject({ code: "session_foreign" });
  const lease = await store.acquire(sessionId);
  if (lease === undefined) throw new Error("the tree is not free");
  const again = await EventLog.open({ ...optionsOf(store), location, lease });
  await again.append([run.interrupted()]);
  await expect(log.append([diagnostic()])).rejects.toMatchObject({ code: "session_foreign" });
  await log.close();
  await again.close();
});
