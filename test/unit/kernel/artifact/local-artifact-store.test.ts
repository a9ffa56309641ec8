import { chmod, open, readdir, readFile, rm, stat, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { isCookieError, SessionId } from "@cookie-agent/sdk/protocol";
import { describe, expect, test } from "vitest";
import { createLocalArtifactStore } from "../../../../kernel/src/artifact/local-artifact-store.ts";
import { tryLockDescriptor } from "../../../../kernel/src/support/file-lock.ts";
import { createStore, OTHER_ROOT, ROOT } from "./artifact-fixture.ts";

const { store, storeDir } = await createStore();
const ownDirectory = join(storeDir, ROOT, "artifacts");
const OLD = new Date(Date.now() - 2 * 60 * 60 * 1000);

describe("the local artifact store", () => {
  test("[T-146] [S-104] equal content is one file, made young again, in private files", async () => {
    const { sha256 } = await store.put(ROOT, Buffer.from("same"));
    const path = join(ownDirectory, sha256);
    await utimes(path, OLD, OLD);
    await store.put(ROOT, Buffer.from("same"));
    const after = await stat(path);
    expect(after.mtimeMs).toBeGreaterThan(OLD.getTime() + 60_000);
    expect([after.mode & 0o777, (await stat(ownDirectory)).mode & 0o777]).toEqual([0o600, 0o700]);
    expect((await readdir(ownDirectory)).filter((name) => name.includes(sha256))).toEqual([sha256]);
  });

  test("[S-105] output of a tree without a folder goes to the shared store", async () => {
    const unplaced = SessionId.parse("0198c000-0000-7000-8000-0000000000ff");
    const { sha256 } = await store.put(unplaced, Buffer.from("unplaced"));
    await expect(readdir(join(storeDir, "artifacts.shared"))).resolves.toEqual([sha256]);
  });

  test("[T-141] possession of an id reaches the other trees of the project", async () => {
    const { sha256 } = await store.put(OTHER_ROOT, Buffer.from("over there"));
    const opened = await createLocalArtifactStore({ storeDir }).open(ROOT, sha256);
    expect(Buffer.from(await opened.read(0, 100)).toString()).toBe("over there");
    await opened.close();
  });

  test("[T-144] [S-106] a changed artifact is artifact_corrupt, an absent one artifact_missing", async () => {
    const { sha256 } = await store.put(ROOT, Buffer.from("to be changed"));
    await chmod(join(ownDirectory, sha256), 0o600);
    await writeFile(join(ownDirectory, sha256), "changed!");
    const fresh = createLocalArtifactStore({ storeDir });
    await expect(fresh.open(ROOT, sha256)).rejects.toSatisfy((e) =>
      isCookieError(e, "artifact_corrupt"),
    );
    await expect(fresh.open(ROOT, "0".repeat(64))).rejects.toSatisfy((e) =>
      isCookieError(e, "artifact_missing"),
    );
  });

  test("[T-146] storing content again repairs a corrupt file", async () => {
    const { sha256 } = await store.put(ROOT, Buffer.from("to be repaired"));
    await writeFile(join(ownDirectory, sha256), "to be repaireD");
    const fresh = createLocalArtifactStore({ storeDir });
    await fresh.put(ROOT, Buffer.from("to be repaired"));
    const opened = await createLocalArtifactStore({ storeDir }).open(ROOT, sha256);
    expect(opened.byteLength).toBe(14);
    await opened.close();
  });

  test("[T-146] storing content again restores a file that is gone or was cut", async () => {
    const bytes = Buffer.from("to be restored");
    const { sha256 } = await store.put(ROOT, bytes);
    const path = join(ownDirectory, sha256);
    for (const damage of [() => rm(path), () => writeFile(path, "to be")]) {
      await damage();
      await store.put(ROOT, bytes);
      expect(await readFile(path, "utf8")).toBe("to be restored");
    }
  });

  test("[T-149] [S-113] cleaning up spares young and locked temporaries and everything else", async () => {
    const names = {
      old: `.capture-${crypto.randomUUID()}-output0.tmp`,
      young: `.capture-${crypto.randomUUID()}-output1.tmp`,
      locked: `.${"0".repeat(64)}.${crypto.randomUUID()}.tmp`,
      artifact: "1".repeat(64),
    };
    const { sha256: stored } = await store.put(ROOT, Buffer.from("makes the folder"));
    for (const name of Object.values(names)) await writeFile(join(ownDirectory, name), "x");
    for (const name of [names.old, names.locked, names.artifact]) {
      await utimes(join(ownDirectory, name), OLD, OLD);
    }
    const holder = await open(join(ownDirectory, names.locked), "r+");
    expect(await tryLockDescriptor(holder.fd)).toBe(true);
    await store.sweepTemporaries();
    const left = await readdir(ownDirectory);
    await holder.close();
    expect(left).toContain(stored);
    expect(
      Object.entries(names)
        .filter(([, name]) => left.includes(name))
        .map(([key]) => key),
    ).toEqual(["young", "locked", "artifact"]);
  });
});
