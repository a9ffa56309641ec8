import { appendFile, mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { SessionId, TreeApprovalGrantId } from "@cookie-agent/sdk/protocol";
import { beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { GrantJournal } from "../../../../kernel/src/store/grant-journal.ts";
import { LocalLogFile } from "../../../../kernel/src/store/local-log-file.ts";
import type { LogFile } from "../../../../kernel/src/store/session-store.ts";
import { createId } from "../../../../kernel/src/support/create-id.ts";

const ROOT = createId<SessionId>();
const DIGEST = "a".repeat(64);
const LOWER_ID = "0198c000-0000-7000-8000-000000000001" as TreeApprovalGrantId;
const UPPER_ID = "0198c000-0000-7000-8000-000000000002" as TreeApprovalGrantId;

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "cookie-journal-"));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
});

const file = () => join(directory, "grant-invalidations.jsonl");
const taken = (root = ROOT) => ({
  root_session_id: root,
  grant_ids: [createId<TreeApprovalGrantId>()],
  resource_digests: [DIGEST],
});
const lines = async () =>
  (await readFile(file(), "utf8")).split("\n").filter((line) => line !== "");
const seqs = async () => (await lines()).map((line) => (JSON.parse(line) as { seq: number }).seq);

describe("writing", () => {
  test("[S-175] records are numbered from 1, whoever writes them", async () => {
    const [one, other] = [new GrantJournal(directory), new GrantJournal(directory)];
    await Promise.all([...Array(10)].map((_, at) => (at % 2 ? one : other).append(taken())));
    await one.append(taken());
    expect(await seqs()).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]);
    expect((await stat(file())).mode & 0o777).toBe(0o600);
  });

  test("only the grants of the tree that is asked for come back", async () => {
    const journal = new GrantJournal(directory);
    expect(await journal.invalidatedIn(ROOT)).toEqual(new Set());
    const [own, other] = [taken(), taken(createId<SessionId>())];
    await journal.append(own);
    await journal.append(other);
    expect(await new GrantJournal(directory).invalidatedIn(ROOT)).toEqual(new Set(own.grant_ids));
  });

  test.for(["append", "sync"] as const)(
    "[S-175] after a failed %s nothing of the record is left, and the next one is written to a file opened anew",
    async (broken) => {
      let fails = true;
      const opened: LogFile[] = [];
      const journal = new GrantJournal(directory, async (path, writable) => {
        const inner = await LocalLogFile.open(path, writable ? { held: true } : undefined);
        const fail = () => {
          if (fails) throw Object.assign(new Error("ENOSPC: no space left"), { code: "ENOSPC" });
        };
        const failing: LogFile = {
          get byteLength() {
            return inner.byteLength;
          },
          read: (from) => inner.read(from),
          append: async (bytes) => {
            if (broken === "append") {
              // Part of it reaches the disk.
              if (fails) await inner.append(bytes.subarray(0, 20));
              fail();
            }
            await inner.append(bytes);
          },
          sync: async () => {
            fail();
            await inner.sync();
          },
          truncate: (length) => inner.truncate(length),
          close: () => inner.close(),
        };
        opened.push(failing);
        return failing;
      });
      await expect(journal.append(taken())).rejects.toMatchObject({ code: "storage_failed" });
      expect(await lines()).toEqual([]);
      fails = false;
      await journal.append(taken());
      expect(await seqs()).toEqual([1]);
      expect(opened).toHaveLength(2);
    },
  );
});

describe("[S-057] reading", () => {
  test("a torn last line is dropped, and cut off by the next record", async () => {
    const journal = new GrantJournal(directory);
    await journal.append(taken());
    const whole = await readFile(file());
    await appendFile(file(), whole.subarray(0, whole.byteLength - 1));
    expect((await journal.invalidatedIn(ROOT)).size).toBe(1);
    await journal.append(taken());
    expect(await seqs()).toEqual([1, 2]);
  });

  const record = (changes: object) =>
    `${JSON.stringify({ seq: 1, timestamp: "2030-01-01T00:00:00.000Z", ...taken(), ...changes })}\n`;
  test.for<[string, string]>([
    ["what is not JSON", "{\n"],
    ["an empty line", "\n"],
    ["bytes that are not UTF-8", "\u{fffd}{}\n"],
    ["a number that does not follow", record({ seq: 2 })],
    ["no number", record({ seq: undefined })],
    ["no grants", record({ grant_ids: [] })],
    ["no resources", record({ resource_digests: [] })],
    ["a grant twice", record({ grant_ids: [UPPER_ID, UPPER_ID] })],
    ["grants out of order", record({ grant_ids: [UPPER_ID, LOWER_ID] })],
    ["a member that nobody knows", record({ extra: true })],
    ["a session that is none", record({ root_session_id: "x" })],
  ])("%s is damage, whatever stands behind it", async ([, line]) => {
    const text = `${line}${record({ seq: 2 })}`;
    await writeFile(file(), text);
    const journal = new GrantJournal(directory);
    const refusal = {
      code: "storage_failed",
      message: expect.stringContaining("line 1") as unknown,
    };
    await expect(journal.invalidatedIn(ROOT)).rejects.toMatchObject(refusal);
    await expect(journal.append(taken())).rejects.toMatchObject(refusal);
    expect(await readFile(file(), "utf8")).toBe(text);
  });

  test("a line without an end does not fill the memory", async () => {
    await writeFile(file(), "x".repeat(3 * 1024 * 1024));
    await expect(new GrantJournal(directory).invalidatedIn(ROOT)).rejects.toMatchObject({
      code: "storage_failed",
      message: expect.stringContaining("too long") as unknown,
    });
  });
});
