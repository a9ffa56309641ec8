import type * as fs from "node:fs";
import { existsSync } from "node:fs";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { SessionId } from "@cookie-agent/sdk/protocol";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { LocalLogFile } from "../../../../kernel/src/store/local-log-file.ts";
import { createId } from "../../../../kernel/src/support/create-id.ts";

const disk = vi.hoisted(() => ({
  writeBytes: Number.POSITIVE_INFINITY,
  room: Number.POSITIVE_INFINITY,
}));

vi.mock("node:fs", async (original) => {
  const real = await original<typeof fs>();
  const writeSync = (fd: number, bytes: Uint8Array, start: number, length: number, at: number) => {
    if (disk.room === 0) throw Object.assign(new Error("no space"), { code: "ENOSPC" });
    const taken = Math.min(length, disk.writeBytes, disk.room);
    disk.room -= taken;
    return real.writeSync(fd, bytes, start, taken, at);
  };
  return { ...real, writeSync };
});

let directory = "";
let path = "";
const lease = { rootId: createId<SessionId>(), held: true, release: () => undefined };

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "log-"));
  path = join(directory, "events.jsonl");
  await writeFile(path, "one\n");
});

afterEach(() => {
  disk.writeBytes = disk.room = Number.POSITIVE_INFINITY;
  return rm(directory, { recursive: true });
});

async function collect(chunks: AsyncIterable<Uint8Array>): Promise<Uint8Array[]> {
  const all: Uint8Array[] = [];
  for await (const chunk of chunks) all.push(chunk);
  return all;
}

test("a reader gets what was there when it began, in bounded chunks", async () => {
  const file = await LocalLogFile.open(path, lease);
  const bytes = Buffer.alloc(700_000, "x");
  await file.append(bytes);
  const reading = file.read(4);
  const first = await reading.next();
  await file.append(Buffer.from("later"));
  const rest = await collect(reading);
  const chunks = first.done ? [] : [first.value, ...rest];
  expect(Buffer.concat(chunks).equals(bytes)).toBe(true);
  expect(Math.max(...chunks.map(({ byteLength }) => byteLength))).toBeLessThanOrEqual(256 * 1024);
  await file.close();
});

test("a reader that stops early leaves the file usable, and closing it waits for nothing", async () => {
  const file = await LocalLogFile.open(path, lease);
  await file.append(Buffer.alloc(700_000, "x"));
  for await (const chunk of file.read()) {
    expect(chunk.byteLength).toBe(256 * 1024);
    break;
  }
  await file.truncate(4);
  expect(Buffer.concat(await collect(file.read())).toString()).toBe("one\n");
  await file.read().next();
  await file.close();
});

test("appends and cuts are at the end, whatever others wrote behind it", async () => {
  const file = await LocalLogFile.open(path, lease);
  await file.append(Buffer.from("two\n"));
  await file.truncate(4);
  await file.append(Buffer.from("three\n"));
  await file.sync();
  expect(await readFile(path, "utf8")).toBe("one\nthree\n");
  expect(file.byteLength).toBe(10);
  await file.close();
  await file.close();
});

test.skipIf(!existsSync("/dev/full"))("a device in the place of a log is no log", async () => {
  await expect(LocalLogFile.open("/dev/full", lease)).rejects.toThrow("no regular file");
});

test("a block that the disk takes piece by piece arrives whole and in order", async () => {
  const file = await LocalLogFile.open(path, lease);
  disk.writeBytes = 3;
  await file.append(Buffer.from("two and three\n"));
  expect(await readFile(path, "utf8")).toBe("one\ntwo and three\n");
  expect(file.byteLength).toBe(18);
  await file.close();
});

test("[S-047] nothing remains of a block that the disk took in part", async () => {
  const file = await LocalLogFile.open(path, lease);
  disk.room = 3;
  await expect(file.append(Buffer.from("two\n"))).rejects.toMatchObject({ code: "ENOSPC" });
  expect(await readFile(path, "utf8")).toBe("one\n");
  expect(file.byteLength).toBe(4);
  await file.close();
});

test("[S-047] a log that was removed is never durable", async () => {
  const file = await LocalLogFile.open(path, lease);
  await rm(path);
  await file.append(Buffer.from("two\n"));
  await expect(file.sync()).rejects.toThrow("its log was removed from the disk");
  await file.close();
});
