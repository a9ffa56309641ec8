import { spawnSync } from "node:child_process";
import { mkdir, mkdtemp, rename, rm, symlink, truncate, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { MAX_SCRATCH_IMPORT_BYTES, type SessionId } from "@cookie-agent/sdk/protocol";
import { expect, onTestFinished, test } from "vitest";
import type { ArtifactStore } from "../../../../kernel/src/artifact/artifact-store.ts";
import { importScratch } from "../../../../kernel/src/artifact/import-scratch.ts";
import { createLocalArtifactStore } from "../../../../kernel/src/artifact/local-artifact-store.ts";
import { createId } from "../../../../kernel/src/support/create-id.ts";

const ROOT = createId<SessionId>();

/** A scratch directory and a store; `onBegin` happens when the file is about to be copied. */
async function openScratch(onBegin: () => Promise<unknown> = async () => undefined) {
  const folder = await mkdtemp(join(tmpdir(), "cookie-scratch-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const scratch = join(folder, "scratch");
  await mkdir(scratch);
  await mkdir(join(folder, "store", ROOT), { recursive: true });
  const store = createLocalArtifactStore({ storeDir: join(folder, "store") });
  const begun: SessionId[] = [];
  const watched: ArtifactStore = {
    put: store.put.bind(store),
    open: store.open.bind(store),
    locate: store.locate.bind(store),
    collect: store.collect.bind(store),
    release: store.release.bind(store),
    syncNames: store.syncNames.bind(store),
    sweepTemporaries: store.sweepTemporaries.bind(store),
    beginCapture: async (rootId) => {
      begun.push(rootId);
      await onBegin();
      return store.beginCapture(rootId);
    },
  };
  const take = (name = "file") => importScratch(watched, ROOT, scratch, name);
  return { scratch, file: join(scratch, "file"), take, begun };
}

test.skipIf(process.platform === "win32")(
  "[E-110] a pipe is not taken, and nobody waits for what would be written into it",
  async () => {
    const { file, take } = await openScratch();
    expect(spawnSync("mkfifo", [file]).status).toBe(0);
    await expect(take()).rejects.toMatchObject({ code: "unsupported_security" });
  },
);

test("[E-110] nothing is taken where a link stands in the place of the scratch directory", async () => {
  const { scratch, file, take } = await openScratch();
  await writeFile(file, "words");
  await rename(scratch, `${scratch}-elsewhere`);
  await symlink(`${scratch}-elsewhere`, scratch);
  await expect(take()).rejects.toMatchObject({ code: "unsupported_security" });
});

test("[E-110] of a file over 64 MiB nothing is copied", async () => {
  const { file, take, begun } = await openScratch();
  await writeFile(file, "");
  await truncate(file, MAX_SCRATCH_IMPORT_BYTES + 1);
  await expect(take()).rejects.toMatchObject({ code: "resource_limit" });
  expect(begun).toEqual([]);
});

test("[E-110] a file that grows over 64 MiB while it is copied is not taken", async () => {
  const { file, take } = await openScratch(() => truncate(file, MAX_SCRATCH_IMPORT_BYTES + 1));
  await writeFile(file, "words");
  await expect(take()).rejects.toMatchObject({ code: "resource_limit" });
});
