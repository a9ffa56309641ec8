import type * as fs from "node:fs";
import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { isCookieError } from "@cookie-agent/sdk/protocol";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { TemporaryFile } from "../../../../kernel/src/artifact/temporary-file.ts";
import { sha256Hex } from "../../../../kernel/src/support/digest.ts";

const disk = vi.hoisted(() => ({
  room: Number.POSITIVE_INFINITY,
  done: [] as string[],
}));

vi.mock("node:fs", async (original) => {
  const real = await original<typeof fs>();
  const fdatasync = (fd: number, done: (error: Error | null) => void) => {
    disk.done.push("sync");
    real.fdatasync(fd, done);
  };
  return {
    ...real,
    fdatasync,
    fdatasyncSync: (fd: number) => {
      disk.done.push("sync");
      real.fdatasyncSync(fd);
    },
    renameSync: (from: string, to: string) => {
      disk.done.push("rename");
      real.renameSync(from, to);
    },
    writeSync: (fd: number, bytes: Uint8Array, start: number, length: number, at: number) => {
      if (disk.room === 0) throw Object.assign(new Error("no space"), { code: "ENOSPC" });
      const taken = Math.min(length, disk.room);
      disk.room -= taken;
      return real.writeSync(fd, bytes, start, taken, at);
    },
  };
});

let directory = "";

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "cookie-temporary-"));
});

afterEach(() => {
  disk.room = Number.POSITIVE_INFINITY;
  return rm(directory, { recursive: true });
});

const create = () => TemporaryFile.create(directory, ".capture-a.tmp");
const target = () => join(directory, "target");

test("[T-132] what a full disk took of a piece is cut off again, and the rest is published", async () => {
  const file = await create();
  await file.append(Buffer.from("kept\n"));
  disk.room = 3;
  await expect(file.append(Buffer.from("lost\n"))).rejects.toThrow("ENOSPC");
  disk.room = Number.POSITIVE_INFINITY;
  expect(file.seal()).toEqual({ sha256: sha256Hex("kept\n"), byteLength: 5, lineCount: 1 });
  await file.moveTo(target());
  expect(await readFile(target(), "utf8")).toBe("kept\n");
});

test("[T-132] a file that is longer or shorter than what was written is not published", async () => {
  for (const found of ["", "abc"]) {
    const file = await create();
    await file.append(Buffer.from("ab"));
    await writeFile(join(directory, ".capture-a.tmp"), found);
    await expect(file.moveTo(target())).rejects.toSatisfy((error) =>
      isCookieError(error, "execution_failed"),
    );
    expect(await readdir(directory)).toEqual([]);
  }
});

test.for([10, 100_000])("%d bytes are durable before they have their name", async (size) => {
  const file = await create();
  await file.append(Buffer.alloc(size, "x"));
  disk.done.length = 0;
  await file.moveTo(target());
  expect(disk.done).toEqual(["sync", "rename"]);
});
