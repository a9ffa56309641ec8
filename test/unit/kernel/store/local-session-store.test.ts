import { spawn } from "node:child_process";
import { once } from "node:events";
import {
  chmod,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rename,
  rm,
  stat,
  symlink,
  utimes,
  writeFile,
} from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import type { SessionId } from "@cookie-agent/sdk/protocol";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import {
  type LocalSessionStoreOptions,
  openLocalSessionStore,
} from "../../../../kernel/src/store/local-session-store.ts";
import { renameStubbornly } from "../../../../kernel/src/store/metadata-file.ts";
import type { SessionStore, StoredMetadata } from "../../../../kernel/src/store/session-store.ts";
import { treeLockPath } from "../../../../kernel/src/store/tree-lock.ts";
import { createId } from "../../../../kernel/src/support/create-id.ts";
import { metadataOf } from "../event/event-fixtures.ts";

let home = "";
let stores: SessionStore[] = [];
const log = Buffer.from("a line\n");

beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), "store-"));
});

afterEach(async () => {
  await Promise.all(stores.map((store) => store.close()));
  stores = [];
  await rm(home, { recursive: true });
});

async function openStore(changes: Partial<LocalSessionStoreOptions> = {}): Promise<SessionStore> {
  const options = { sessionsDir: join(home, "sessions"), cwd: "/home/me/project", ...changes };
  const store = await openLocalSessionStore(options);
  stores.push(store);
  return store;
}

async function publishRoot(store: SessionStore) {
  const sessionId = createId<SessionId>();
  const metadata = metadataOf(sessionId);
  const published = await store.publish({ sessionId, rootId: sessionId, bytes: log, metadata });
  await published.file.close();
  return { sessionId, root: join(store.directory, sessionId), ...published };
}

function childMetadata(sessionId: SessionId, rootId: SessionId): StoredMetadata {
  return {
    ...metadataOf(sessionId),
    origin: {
      type: "delegated",
      root_session_id: rootId,
      parent_session_id: rootId,
      parent_run_id: createId(),
      parent_tool_call_id: createId(),
      invocation_id: "i",
      depth: 1,
    },
  };
}

async function publishChild(store: SessionStore, rootId: SessionId): Promise<SessionId> {
  const sessionId = createId<SessionId>();
  const metadata = childMetadata(sessionId, rootId);
  const { file } = await store.publish({ sessionId, rootId, bytes: log, metadata });
  await file.close();
  return sessionId;
}

async function contents(directory: string): Promise<string[]> {
  return (await readdir(directory, { recursive: true })).sort();
}

/** Another process that holds the lock of a tree until it is killed. */
async function holdElsewhere(lockPath: string) {
  const script = `
    const fd = require("node:fs").openSync(process.argv[1], "a+");
    process.stdout.write(String(require("fs-native-extensions").tryLock(fd)));
    process.stdin.resume();`;
  const holder = spawn(process.execPath, ["-e", script, lockPath], {
    cwd: join(import.meta.dirname, "../../../../kernel"),
    stdio: ["pipe", "pipe", "inherit"],
  });
  const [answer] = (await once(holder.stdout, "data")) as [Buffer];
  expect(answer.toString()).toBe("true");
  return {
    async kill() {
      const exited = once(holder, "exit");
      holder.kill("SIGKILL");
      await exited;
    },
  };
}

describe("layout", () => {
  test("[S-065] [S-066] [S-070] a store holds what the layout names, closed to others", async () => {
    const store = await openStore();
    await expect(stat(store.directory)).rejects.toMatchObject({ code: "ENOENT" });
    const { sessionId, root } = await publishRoot(store);
    const inRoot = ["events.jsonl", "metadata", "owner.lock"];
    expect(await contents(root)).toEqual(inRoot);
    expect((await readdir(store.directory)).sort()).toEqual(
      [".store.lock", sessionId, "cwd", "layout.json"].sort(),
    );
    expect(JSON.parse(await readFile(join(store.directory, "layout.json"), "utf8"))).toEqual({
      version: 2,
    });
    expect(await readFile(join(store.directory, "cwd"), "utf8")).toBe("/home/me/project");
    for (const directory of [store.directory, root]) {
      expect((await stat(directory)).mode & 0o777).toBe(0o700);
    }
    for (const file of inRoot) expect((await stat(join(root, file))).mode & 0o777).toBe(0o600);
  });

  test("[S-066] existing modes are kept, except that of the lock file", async () => {
    const first = await openStore();
    const { sessionId, root } = await publishRoot(first);
    await first.close();
    for (const name of ["", "events.jsonl", "owner.lock"]) await chmod(join(root, name), 0o755);
    const store = await openStore();
    await store.acquire(sessionId);
    const modes = await Promise.all(
      ["", "events.jsonl", "owner.lock"].map(
        async (name) => (await stat(join(root, name))).mode & 0o777,
      ),
    );
    expect(modes).toEqual([0o755, 0o755, 0o600]);
  });

  test.for([
    ["another version", '{"version":3}'],
    ["no JSON", "layout"],
  ] as const)("[S-067] a layout with %s is refused", async ([, text]) => {
    const store = await openStore();
    await publishRoot(store);
    await writeFile(join(store.directory, "layout.json"), text);
    await expect(openStore()).rejects.toMatchObject({ code: "storage_failed" });
  });

  test("[S-067] a store with sessions and without a layout is refused", async () => {
    const store = await openStore();
    await publishRoot(store);
    await rm(join(store.directory, "layout.json"));
    await expect(openStore()).rejects.toThrow(/layout\.json/);
  });

  test("[S-069] a store under an old suffix is found again", async () => {
    const store = await openStore();
    const { sessionId } = await publishRoot(store);
    const moved = `${store.directory.slice(0, store.directory.lastIndexOf("-"))}-old`;
    await rename(store.directory, moved);
    const again = await openStore();
    expect(again.directory).toBe(moved);
    expect((await again.list()).sessions.map(({ session_id }) => session_id)).toEqual([sessionId]);
  });

  test("[S-070] the cwd file is rewritten only when it differs", async () => {
    const store = await openStore();
    await publishRoot(store);
    const file = join(store.directory, "cwd");
    await utimes(file, 1, 1);
    await publishRoot(await openStore());
    expect((await stat(file)).mtimeMs).toBe(1000);
    await writeFile(file, "/elsewhere");
    await publishRoot(await openStore());
    expect(await readFile(file, "utf8")).toBe("/home/me/project");
  });

  test("[B109] two long paths with the same first 200 characters never mix", async () => {
    const shared = `/home/${"x".repeat(200)}`;
    const [first, second] = [
      await openStore({ cwd: `${shared}/a` }),
      await openStore({ cwd: `${shared}/b` }),
    ];
    await publishRoot(first);
    expect((await second.list()).sessions).toEqual([]);
  });
});

describe("publication", () => {
  test("[S-024] [S-089] a root appears complete and locked", async () => {
    const { sessionId, root, lease } = await publishRoot(await openStore());
    expect(lease).toMatchObject({ rootId: sessionId, held: true });
    expect(await readFile(join(root, "events.jsonl"), "utf8")).toBe("a line\n");
    expect(await (await openStore()).access(sessionId)).toBe("foreign");
  });

  test("[S-026] what stands in the way of a root leaves no file and no lock behind", async () => {
    const store = await openStore();
    await publishRoot(store);
    const before = await contents(store.directory);
    const sessionId = createId<SessionId>();
    const publication = {
      sessionId,
      rootId: sessionId,
      bytes: log,
      metadata: metadataOf(sessionId),
    };
    await writeFile(join(store.directory, sessionId), "in the way");
    await expect(store.publish(publication)).rejects.toThrow();
    await rm(join(store.directory, sessionId));
    expect(await contents(store.directory)).toEqual(before);
    expect(await store.access(sessionId)).toBe("free");
    await (await store.publish(publication)).file.close();
  });

  test("[S-089] a child lies below its root and takes no lock", async () => {
    const store = await openStore();
    const { sessionId: rootId, root } = await publishRoot(store);
    const childId = await publishChild(store, rootId);
    expect(await contents(join(root, "subagents"))).toEqual(
      [childId, `${childId}/events.jsonl`, `${childId}/metadata`].sort(),
    );
    expect(await store.find(childId)).toEqual({ sessionId: childId, rootId });
  });

  test("[S-089] [S-074] a child may come before its root, which then joins it", async () => {
    const store = await openStore();
    const rootId = createId<SessionId>();
    const childId = await publishChild(store, rootId);
    expect(await store.access(rootId)).toBe("owned");
    expect(await store.list()).toEqual({ sessions: [], diagnostics: [] });
    const metadata = metadataOf(rootId);
    const { file } = await store.publish({ sessionId: rootId, rootId, bytes: log, metadata });
    await file.close();
    expect((await store.list()).sessions).toEqual([metadata]);
    expect(await readdir(join(store.directory, rootId))).toEqual(
      expect.arrayContaining(["events.jsonl", "metadata", "owner.lock", "subagents"]),
    );
    expect(await store.find(childId)).toEqual({ sessionId: childId, rootId });
  });

  test("[S-025] the lock of a root lies beside it on Windows", () => {
    const rootId = createId<SessionId>();
    expect(treeLockPath("/s", rootId, "win32")).toBe(join("/s", `${rootId}.owner.lock`));
    expect(treeLockPath("/s", rootId, "linux")).toBe(join("/s", rootId, "owner.lock"));
  });
});

describe("ownership", () => {
  test("[S-082] a tree is held once, by a single try, until its lease is released", async () => {
    const [here, there] = [await openStore(), await openStore()];
    const { sessionId, lease } = await publishRoot(here);
    expect(await there.acquire(sessionId)).toBeUndefined();
    expect(await here.acquire(sessionId)).toBe(lease);
    lease.release();
    expect(lease.held).toBe(false);
    expect(await there.acquire(sessionId)).toMatchObject({ held: true });
    expect(await here.access(sessionId)).toBe("foreign");
  });

  test("[S-082] [C-002] [B103] the death of the holder frees the tree at once", async () => {
    const store = await openStore();
    const { sessionId, root, lease } = await publishRoot(store);
    lease.release();
    const holder = await holdElsewhere(join(root, "owner.lock"));
    try {
      expect(await store.access(sessionId)).toBe("foreign");
      expect(await store.acquire(sessionId)).toBeUndefined();
    } finally {
      await holder.kill();
    }
    expect(await store.acquire(sessionId)).toMatchObject({ held: true });
  });

  test("[S-088] [B103] a log file whose lease was dropped refuses to be written", async () => {
    const store = await openStore();
    const { sessionId, lease } = await publishRoot(store);
    const file = await store.open({ sessionId, rootId: sessionId }, lease);
    await file.append(log);
    lease.release();
    await expect(file.append(log)).rejects.toMatchObject({ code: "session_foreign" });
    await expect(file.truncate(0)).rejects.toMatchObject({ code: "session_foreign" });
    await file.close();
  });

  test("[S-084] a log opened without a lease cannot be written", async () => {
    const store = await openStore();
    const { sessionId } = await publishRoot(store);
    const file = await store.open({ sessionId, rootId: sessionId });
    await expect(file.append(log)).rejects.toMatchObject({ code: "session_foreign" });
    await file.close();
  });

  test("[S-082] a lock that is not a plain file fails closed", async () => {
    const store = await openStore();
    const { sessionId, root, lease } = await publishRoot(store);
    lease.release();
    await rm(join(root, "owner.lock"));
    await symlink("/dev/null", join(root, "owner.lock"));
    expect(await store.acquire(sessionId)).toBeUndefined();
    expect(await store.access(sessionId)).toBe("foreign");
  });
});

describe("discovery", () => {
  test("[S-076] only directories named by a session id count, and no lock is taken", async () => {
    const store = await openStore();
    const { sessionId } = await publishRoot(store);
    await writeFile(join(store.directory, createId()), "a file");
    await mkdir(join(store.directory, `.${createId()}.tmp`));
    await mkdir(join(store.directory, "artifacts.shared"));
    const other = await openStore();
    const { sessions, diagnostics } = await other.list();
    expect([sessions.map(({ session_id }) => session_id), diagnostics]).toEqual([[sessionId], []]);
    expect((await readdir(join(store.directory, sessionId))).sort()).toEqual([
      "events.jsonl",
      "metadata",
      "owner.lock",
    ]);
  });

  test("[S-073] [B107] a listing reads no log, however large or broken", async () => {
    const store = await openStore();
    const { root, lease } = await publishRoot(store);
    lease.release();
    await rm(join(root, "events.jsonl"));
    await mkdir(join(root, "events.jsonl"));
    expect(await store.list()).toMatchObject({ sessions: [{ status: "idle" }], diagnostics: [] });
  });

  test("[S-074] a root without metadata is skipped and found once it is there", async () => {
    const store = await openStore();
    const { root } = await publishRoot(store);
    await rename(join(root, "metadata"), join(root, "aside"));
    expect(await store.list()).toEqual({ sessions: [], diagnostics: [] });
    await rename(join(root, "aside"), join(root, "metadata"));
    expect((await store.list()).sessions).toHaveLength(1);
  });

  test("[S-075] unparsable metadata is rebuilt from the log, on disk by the holder alone", async () => {
    const titled = (sessionId: SessionId) => ({ ...metadataOf(sessionId), title: "rebuilt" });
    const rebuildMetadata = async ({ sessionId }: { sessionId: SessionId }) => titled(sessionId);
    const owner = await openStore({ rebuildMetadata });
    const { sessionId, root } = await publishRoot(owner);
    const other = await openStore({ rebuildMetadata });
    await writeFile(join(root, "metadata"), "");
    expect((await other.list()).sessions).toEqual([titled(sessionId)]);
    expect(await readFile(join(root, "metadata"), "utf8")).toBe("");
    expect((await owner.list()).sessions).toEqual([titled(sessionId)]);
    expect(JSON.parse(await readFile(join(root, "metadata"), "utf8"))).toEqual(titled(sessionId));
  });

  test("[S-075] metadata of another session, or none that can be rebuilt, is a diagnostic", async () => {
    const store = await openStore();
    const [wrong, broken] = [await publishRoot(store), await publishRoot(store)];
    await writeFile(join(wrong.root, "metadata"), JSON.stringify(metadataOf(createId())));
    await writeFile(join(broken.root, "metadata"), "{");
    const { sessions, diagnostics } = await store.list();
    expect(sessions).toEqual([]);
    expect(diagnostics.sort()).toEqual(
      [expect.stringContaining(wrong.sessionId), expect.stringContaining(broken.sessionId)].sort(),
    );
  });

  test("[S-075] a missing last activity is the time of the log's last change", async () => {
    const store = await openStore();
    const { sessionId, root } = await publishRoot(store);
    const { last_activity: _, ...undated } = metadataOf(sessionId);
    await writeFile(join(root, "metadata"), JSON.stringify(undated));
    await utimes(join(root, "events.jsonl"), 10, 10);
    expect((await store.list()).sessions[0]?.last_activity).toBe("1970-01-01T00:00:10.000Z");
  });
});

describe("metadata", () => {
  test("[S-071] it is replaced as a whole; its name always resolves", async () => {
    const store = await openStore();
    const { sessionId, root } = await publishRoot(store);
    const path = join(root, "metadata");
    let reading = true;
    const reader = (async () => {
      while (reading) JSON.parse(await readFile(path, "utf8"));
    })();
    for (let count = 1; count <= 20; count += 1) {
      await store.writeMetadata({ ...metadataOf(sessionId), last_event_seq: count });
    }
    reading = false;
    await reader;
    expect(JSON.parse(await readFile(path, "utf8"))).toMatchObject({ last_event_seq: 20 });
    expect((await readdir(root)).filter((name) => name.startsWith("."))).toEqual([]);
  });

  test("[S-071] only the holder of the tree writes it", async () => {
    const store = await openStore();
    const { sessionId, lease } = await publishRoot(store);
    lease.release();
    const writing = store.writeMetadata(metadataOf(sessionId));
    await expect(writing).rejects.toMatchObject({ code: "session_foreign" });
  });

  test("[S-251] a replace that Windows refuses is tried 50 times, elsewhere once", async () => {
    const triesOn = async (platform: NodeJS.Platform) => {
      let tries = 0;
      const refuse = async () => {
        tries += 1;
        throw Object.assign(new Error("EPERM"), { code: "EPERM" });
      };
      await expect(renameStubbornly(refuse, platform)).rejects.toThrow("EPERM");
      return tries;
    };
    expect(await triesOn("linux")).toBe(1);
    expect(await triesOn("win32")).toBe(50);
  });
});

describe("what writers that died have left", () => {
  const HOURS_AGO = new Date(Date.now() - 2 * 60 * 60 * 1000);

  /** A publication that was cut off: its directory, two hours old. */
  async function leaveStaged(directory: string, sessionId: SessionId): Promise<string> {
    const staged = join(directory, `.${sessionId}.${createId()}.tmp`);
    await mkdir(staged);
    await writeFile(join(staged, "events.jsonl"), log);
    await utimes(staged, HOURS_AGO, HOURS_AGO);
    return staged;
  }

  test("[S-274] inside a tree it goes when the tree is taken, and not while another process has it", async () => {
    const first = await openStore();
    const { sessionId, root } = await publishRoot(first);
    const childId = await publishChild(first, sessionId);
    await first.close();
    const clean = await contents(root);
    const child = join(root, "subagents", childId);
    await leaveStaged(join(root, "subagents"), createId<SessionId>());
    for (const path of [
      join(root, ".metadata.0123456789abcdef.tmp"),
      join(root, "subagents", ".index.json.0123456789abcdef.tmp"),
      join(child, ".metadata.0123456789abcdef.tmp"),
    ]) {
      await writeFile(path, "half");
    }
    const left = await contents(root);
    const holder = await holdElsewhere(join(root, "owner.lock"));
    const second = await openStore();
    expect(await second.acquire(sessionId)).toBeUndefined();
    await second.sweep();
    expect(await contents(root)).toEqual(left);
    await holder.kill();
    await second.acquire(sessionId);
    expect(await contents(root)).toEqual(clean);
  });

  test("[S-274] a cache that is on its way here is not taken for one", async () => {
    const store = await openStore();
    const { sessionId } = await publishRoot(store);
    await store.close();
    const again = await openStore();
    const held = await again.acquire(sessionId);
    const writes = Array.from({ length: 20 }, () => again.writeMetadata(metadataOf(sessionId)));
    const taken = Array.from({ length: 20 }, () => again.acquire(sessionId));
    await Promise.all(writes);
    for (const lease of await Promise.all(taken)) expect(lease).toBe(held);
  });

  test("[S-274] a publication of a root goes when it is old and nobody holds it", async () => {
    const store = await openStore();
    const { sessionId } = await publishRoot(store);
    const dead = await leaveStaged(store.directory, createId<SessionId>());
    const young = await leaveStaged(store.directory, createId<SessionId>());
    await utimes(young, new Date(), new Date());
    const locked = await leaveStaged(store.directory, createId<SessionId>());
    const holder = await holdElsewhere(join(locked, "owner.lock"));
    await utimes(locked, HOURS_AGO, HOURS_AGO);
    // a root that joins its children is locked in its place, by us
    const merging = await leaveStaged(store.directory, sessionId);
    const removed = join(store.directory, `.removed-${sessionId}.00.tmp`);
    await mkdir(removed);
    const link = join(store.directory, `.${createId()}.${createId()}.tmp`);
    await symlink(home, link);

    await store.sweep();
    const there = await readdir(store.directory);
    for (const path of [dead, removed]) expect(there).not.toContain(basename(path));
    for (const path of [young, locked, merging, link]) expect(there).toContain(basename(path));
    await holder.kill();
    await store.close();
    await store.sweep();
    expect(await readdir(store.directory)).not.toContain(basename(locked));
    expect(await readdir(store.directory)).not.toContain(basename(merging));
  });
});
