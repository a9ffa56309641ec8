import { spawn } from "node:child_process";
import { once } from "node:events";
import { appendFile, mkdtemp, readFile, rm, stat, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { SessionId } from "@cookie-agent/sdk/protocol";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import {
  readCrossReferences,
  recordCrossReferences,
} from "../../../../kernel/src/store/cross-references.ts";
import type { CrossReference } from "../../../../kernel/src/store/session-store.ts";
import { createId } from "../../../../kernel/src/support/create-id.ts";
import { sha256Hex } from "../../../../kernel/src/support/digest.ts";

let store = "";

beforeEach(async () => {
  store = await mkdtemp(join(tmpdir(), "ledger-"));
});
afterEach(() => rm(store, { recursive: true }));

function reference(changes: Partial<CrossReference> = {}): CrossReference {
  return {
    digest: sha256Hex(createId()),
    from_root: createId<SessionId>(),
    to_root: createId<SessionId>(),
    seq: 3,
    ...changes,
  };
}

describe("[S-114] the ledger of references between trees", () => {
  test("keeps what was recorded, in order, in a file that only its owner reads", async () => {
    const all = [reference(), reference({ to_root: "shared" }), reference()];
    expect(await readCrossReferences(store)).toEqual([]);
    await recordCrossReferences(store, []);
    await recordCrossReferences(store, all.slice(0, 2));
    await recordCrossReferences(store, all.slice(2));
    expect(await readCrossReferences(store)).toEqual(all);
    expect((await stat(join(store, "cross-refs.jsonl"))).mode & 0o777).toBe(0o600);
  });

  test("a torn end is ignored, and what comes after it is not lost", async () => {
    const [before, after] = [reference(), reference()];
    await recordCrossReferences(store, [before]);
    await appendFile(join(store, "cross-refs.jsonl"), '{"digest":"00');
    expect(await readCrossReferences(store)).toEqual([before]);
    await recordCrossReferences(store, [after]);
    expect(await readCrossReferences(store)).toEqual([before, after]);
  });

  test("lines that are no references are left out", async () => {
    const one = reference();
    const lines = ["", "null", "[]", "{}", JSON.stringify({ ...one, to_root: "../elsewhere" })];
    await writeFile(join(store, "cross-refs.jsonl"), `${lines.join("\n")}\n`);
    await recordCrossReferences(store, [one]);
    expect(await readCrossReferences(store)).toEqual([one]);
  });

  test("one that does not fit is refused before anything is written", async () => {
    const bad = reference({ digest: "no digest" });
    await expect(recordCrossReferences(store, [reference(), bad])).rejects.toThrow();
    expect(await readCrossReferences(store)).toEqual([]);
  });

  test.skipIf(process.platform === "win32")("a link in its place is not followed", async () => {
    const outside = join(store, "outside");
    await writeFile(outside, "mine");
    await symlink(outside, join(store, "cross-refs.jsonl"));
    await expect(recordCrossReferences(store, [reference()])).rejects.toThrow();
    expect(await readFile(outside, "utf8")).toBe("mine");
  });

  test("several processes that write at once lose nothing", async () => {
    const module = new URL("../../../../kernel/dist/store/cross-references.js", import.meta.url);
    const program = `
      const { recordCrossReferences } = await import(${JSON.stringify(module.href)});
      const [store, seq] = process.argv.slice(-2);
      const root = "01890000-0000-7000-8000-000000000000";
      const digest = "a".repeat(64);
      for (let n = 0; n < 20; n += 1)
        await recordCrossReferences(store, Array(30).fill({ digest, from_root: root, to_root: "shared", seq: Number(seq) }));
    `;
    const writers = [1, 2, 3].map((seq) =>
      spawn(process.execPath, ["--input-type=module", "-e", program, store, String(seq)], {
        stdio: "inherit",
      }),
    );
    const exits = await Promise.all(writers.map((child) => once(child, "exit")));
    expect(exits).toEqual([0, 0, 0].map((code) => [code, null]));
    const recorded = await readCrossReferences(store);
    for (const seq of [1, 2, 3]) {
      expect(recorded.filter((each) => each.seq === seq)).toHaveLength(600);
    }
  });
});
