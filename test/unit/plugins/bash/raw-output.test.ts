import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { DrivenCall } from "../../../support/plugin-driver.ts";
import { useBash } from "./bash-fixture.ts";

const bash = useBash({ raw: true });
const MIB = 1024 * 1024;
/** Prints bytes that never repeat, in odd pieces and on both streams in turn, and notes their digests. */
const PRINTER = `
import { createHash, randomBytes } from "node:crypto";
import { writeFileSync, writeSync } from "node:fs";
const [, , byteLength, report] = process.argv;
const digests = [createHash("sha256"), createHash("sha256")];
const sizes = [1, 65_536, 4095, 16_384, 70_001, 3, 4097];
for (let sent = 0, n = 0; sent < Number(byteLength); n += 1) {
  const bytes = randomBytes(sizes[n % sizes.length]);
  digests[n % 2].update(bytes);
  for (let at = 0; at < bytes.length; ) at += writeSync(1 + (n % 2), bytes, at);
  sent += bytes.length;
}
writeFileSync(report, digests.map((digest) => digest.digest("hex")).join());
`;

function print(byteLength: number, name: string, acknowledge = true): DrivenCall {
  // Each its own: one that starts must not find the file while it is written anew.
  const printer = join(bash.workspace, `${name}.mjs`);
  writeFileSync(printer, PRINTER);
  const command = `'${process.execPath}' '${printer}' ${byteLength} ${name}`;
  return bash.start(command, { timeout: 600_000 }, { acknowledge });
}

const printed = (name: string) => readFileSync(join(bash.workspace, name), "utf8");

function received(call: DrivenCall): string {
  const digest = (name: string) => {
    const hash = createHash("sha256");
    for (const { stream, bytes } of call.rawDeltas) if (stream === name) hash.update(bytes);
    return hash.digest("hex");
  };
  return [digest("stdout"), digest("stderr")].join();
}

describe("raw output", () => {
  test("[E-016] [T-075] both streams of several calls arrive byte for byte", async () => {
    const names = ["a", "b", "c"];
    const calls = names.map((name) => print(6 * MIB, name));
    await Promise.all(calls.map(({ result }) => result));
    expect(calls.map(received)).toEqual(names.map(printed));
    expect(calls.flatMap(({ deltas }) => deltas)).toEqual([]);
  });

  test("[E-016] [E-103] what waits for an acknowledgement is not overwritten by what comes", async () => {
    const call = print(8 * MIB, "slow", false);
    while (call.byteLength < MIB / 2) await call.nextDelta();
    // What the pipe brings meanwhile must find other memory.
    for (let n = 0; n < 20; n += 1) await bash.run("true");
    call.acknowledge();
    await call.result;
    expect(received(call)).toBe(printed("slow"));
  });
});
