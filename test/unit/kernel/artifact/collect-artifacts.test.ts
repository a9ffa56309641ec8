import { mkdir, readdir, symlink, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Digest, RetainedStream, SessionId } from "@cookie-agent/sdk/protocol";
import { describe, expect, test } from "vitest";
import { encodeManifest } from "../../../../kernel/src/artifact/artifact-manifest.ts";
import { storedArtifactReference } from "../../../../kernel/src/artifact/artifact-uri.ts";
import { findDigests } from "../../../../kernel/src/artifact/find-digests.ts";
import { createLocalArtifactStore } from "../../../../kernel/src/artifact/local-artifact-store.ts";
import { createId } from "../../../../kernel/src/support/create-id.ts";
import { useProject } from "../../../support/use-project.ts";

const HOURS_MS = 3_600_000;
const nothing = async () => new Set<Digest>();

async function openStore() {
  const { cwd: storeDir } = await useProject();
  const rootId = createId<SessionId>();
  await mkdir(join(storeDir, rootId));
  const directory = join(storeDir, rootId, "artifacts");
  const store = createLocalArtifactStore({ storeDir });
  /** Stores content as another process did hours ago. */
  const putOld = async (text: string | Uint8Array, hours = 2): Promise<Digest> => {
    const before = createLocalArtifactStore({ storeDir });
    const { sha256 } = await before.put(rootId, Buffer.from(text));
    await age(join(directory, sha256), hours);
    return sha256;
  };
  return { storeDir, rootId, directory, store, putOld };
}

async function age(path: string, hours: number): Promise<void> {
  const then = new Date(Date.now() - hours * HOURS_MS);
  await utimes(path, then, then);
}

function stream(name: string, sha256: Digest): RetainedStream {
  return {
    name,
    sha256,
    reference: storedArtifactReference(sha256),
    byte_length: 1,
    line_count: 1,
    truncated: true,
    next_offset: null,
    next_byte: null,
  };
}

describe("[S-110] the collection of a tree", () => {
  test("[S-112] removes what is old and not referred to; what is young or referred to stays", async () => {
    const { rootId, directory, store, putOld } = await openStore();
    const [old, live, young] = [await putOld("old"), await putOld("live"), await putOld("y", 0.9)];
    const asked: Digest[][] = [];
    const mentioned = async (candidates: ReadonlySet<Digest>) => {
      asked.push([...candidates].sort());
      return new Set([live]);
    };
    expect(await store.collect(rootId, mentioned)).toEqual([old]);
    expect((await readdir(directory)).sort()).toEqual([live, young].sort());
    expect(asked).toEqual([[old, live].sort()]);
    // What is known to be referred to is not asked for again: logs only grow.
    expect(await store.collect(rootId, mentioned)).toEqual([]);
    expect(asked).toHaveLength(1);
  });

  test("follows what is referred to, and what is young, to the streams that it names", async () => {
    const { rootId, directory, store, putOld } = await openStore();
    const [one, two, three] = [await putOld("1"), await putOld("2"), await putOld("3")];
    const manifest = (name: string, digest: Digest) => encodeManifest([stream(name, digest)]);
    const live = await putOld(manifest("a", one));
    const young = await putOld(manifest("b", two), 0);
    const dead = await putOld(manifest("c", three));
    const removed = await store.collect(rootId, async () => new Set([live]));
    expect([...removed].sort()).toEqual([three, dead].sort());
    expect((await readdir(directory)).sort()).toEqual([one, two, live, young].sort());
  });

  test("[S-112] leaves out what this process published, until that is released", async () => {
    const { rootId, directory, store } = await openStore();
    const { sha256 } = await store.put(rootId, Buffer.from("a result on its way"));
    const capture = await store.beginCapture(rootId);
    await capture.append(Buffer.from("output"));
    const output = capture.seal().sha256;
    await capture.publish();
    for (const digest of [sha256, output]) await age(join(directory, digest), 5);
    expect(await store.collect(rootId, nothing)).toEqual([]);
    store.release(rootId);
    expect([...(await store.collect(rootId, nothing))].sort()).toEqual([sha256, output].sort());
  });

  test("what is stored again while it is judged stays", async () => {
    const { storeDir, rootId, store, putOld } = await openStore();
    const digest = await putOld("again");
    const removed = await store.collect(rootId, async () => {
      await createLocalArtifactStore({ storeDir }).put(rootId, Buffer.from("again"));
      return new Set();
    });
    expect(removed).toEqual([]);
    await (await store.open(rootId, digest)).close();
  });

  test("a log that cannot be read leaves everything as it is", async () => {
    const { rootId, directory, store, putOld } = await openStore();
    const digest = await putOld("old");
    const failing = () => Promise.reject(new Error("EIO"));
    await expect(store.collect(rootId, failing)).rejects.toThrow("EIO");
    expect(await readdir(directory)).toEqual([digest]);
  });

  test("touches nothing that is no artifact", async () => {
    const { rootId, directory, store, putOld } = await openStore();
    await putOld("old");
    const outside = join(directory, "..", "outside");
    await writeFile(outside, "mine");
    const names = ["a".repeat(63), "A".repeat(64), ".capture-x.tmp", "notes.txt"];
    for (const name of names) {
      await writeFile(join(directory, name), "x");
      await age(join(directory, name), 5);
    }
    await symlink(outside, join(directory, "b".repeat(64)));
    await mkdir(join(directory, "c".repeat(64)));
    await store.collect(rootId, nothing);
    expect((await readdir(directory)).sort()).toEqual(
      [...names, "b".repeat(64), "c".repeat(64)].sort(),
    );
  });
});

describe("digests in a log", () => {
  test("are found whole wherever the chunks are cut, and nothing longer or shorter is", async () => {
    const [one, two] = ["a1".repeat(32), "0f".repeat(32)];
    const text = `{"x":"${one}","y":"artifact://sha256/${two}","z":"${"b".repeat(65)}","w":"${"c".repeat(63)}"}\n`;
    for (const length of [1, 7, 63, 64, 65, 1000]) {
      const found = new Set<string>();
      for await (const digest of findDigests(cut(Buffer.from(text), length))) found.add(digest);
      expect(found.has(one) && found.has(two), `in pieces of ${length}`).toBe(true);
      if (length === 1000) expect(found.size).toBe(2);
    }
  });
});

async function* cut(bytes: Buffer, length: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += length) yield bytes.subarray(at, at + length);
}
