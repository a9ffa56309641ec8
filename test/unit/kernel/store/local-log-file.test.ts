import { existsSync } from "node:fs";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { SessionId } from "@cookie-agent/sdk/protocol";
import { afterEach, beforeEach, expect, test } from "vitest";
import { LocalLogFile } from "../../../../kernel/src/store/local-log-file.ts";
import { createId } from "../../../../kernel/src/support/create-id.ts";

let directory = "";
let path = "";
const lease = { rootId: createId<SessionId>(), held: true, release: () => undefined };

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "log-"));
  path = join(directory, "events.jsonl");
  await writeFile(path, "one\n");
});

afterEach(() => rm(directory, { recursive: true }));

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

test.skipIf(!existsSync("/dev/full"))(
  "[S-047] a full disk fails the append with nothing appended",
  async () => {
    const file = await LocalLogFile.open("/dev/full", lease);
    await expect(file.append(Buffer.from("x"))).rejects.toMatchObject({ code: "ENOSPC" });
    expect(file.byteLength).toBe(0);
    await file.close();
  },
);
