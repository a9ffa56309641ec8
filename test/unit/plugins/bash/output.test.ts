import { execFileSync } from "node:child_process";
import { describe, expect, test } from "vitest";
import { useBash } from "./bash-fixture.ts";

const bash = useBash();
const MIB = 1024 * 1024;

describe("decoding", () => {
  test("[B053] [T-075] a character split over two writes is one character", async () => {
    const { stdout } = await bash.run("printf '\\xe2'; sleep 0.12; printf '\\x80\\x94'");
    expect(stdout).toBe("\u2014");
  });

  test("[T-075] invalid bytes and a cut character become U+FFFD", async () => {
    const { stdout } = await bash.run("printf 'a\\xffb\\xe2\\x80'");
    expect(stdout).toBe("a\ufffdb\ufffd");
  });

  test("[T-075] no chunk ends inside a character, however fast they come", async () => {
    const call = bash.start("for i in {1..40000}; do printf '😀é'; done");
    await call.result;
    expect(call.output("stdout") === "😀é".repeat(40_000)).toBe(true);
    expect(call.deltas.every(({ text }) => !text.includes("\ufffd"))).toBe(true);
  });
});

describe("flushing", () => {
  test("[T-075] little output is sent while the command still runs", async () => {
    const call = bash.start("echo early; until [ -e go ]; do sleep 0.02; done; rm go");
    await call.printed("early\n");
    await bash.run("touch go");
    await call.result;
  });

  test("[T-075] many small writes are gathered into few deltas", async () => {
    const call = bash.start("for i in {1..3000}; do echo 0123456789012345678901234567890; done");
    await call.result;
    expect(call.byteLength).toBe(3000 * 32);
    expect(call.deltas.length).toBeLessThan(100);
  });

  test("no delta holds more than 64 KiB", async () => {
    const call = bash.start("head -c 3000000 /dev/zero | tr '\\0' x");
    await call.result;
    const sizes = call.deltas.map(({ text }) => Buffer.byteLength(text));
    expect(Math.max(...sizes)).toBeLessThanOrEqual(64 * 1024);
    expect(call.byteLength).toBe(3_000_000);
  });
});

test("[B062] progress bars are passed on byte for byte", async () => {
  const { stdout } = await bash.run(
    "for i in 1 2 3; do printf '\\e[32m10%%\\r100%%\\e[0m\\n'; done",
  );
  expect(stdout).toBe("\u001b[32m10%\r100%\u001b[0m\n".repeat(3));
});

describe("a flood", () => {
  test("[B059] 3 MiB of numbered lines reach the kernel whole and in order", async () => {
    const { stdout } = await bash.run("seq -w 1 393216");
    const lines = stdout.trimEnd().split("\n");
    expect(lines).toHaveLength(393_216);
    expect(lines.every((line, index) => Number(line) === index + 1)).toBe(true);
  });

  test("[B058] 300 MB without a newline arrive whole in bounded memory", async () => {
    const memory = watchMemory(bash.plugin.pid);
    const call = bash.start(
      "head -c 300000000 /dev/zero | tr '\\0' x",
      { timeout: 600_000 },
      { keepOutput: false },
    );
    expect((await call.result).metadata).toMatchObject({ status: 0 });
    expect(call.byteLength).toBe(300_000_000);
    expect(memory.growth()).toBeLessThan(80 * MIB);
  });

  test("[B055] what the kernel has not taken is neither read on nor lost", async () => {
    const memory = watchMemory(bash.plugin.pid);
    const call = bash.start("seq 1 1000000", {}, { acknowledge: false });
    while (call.byteLength < 0.9 * MIB) await call.nextDelta();
    await bash.run("true");
    expect(call.byteLength).toBeLessThanOrEqual(MIB);
    expect(memory.growth()).toBeLessThan(64 * MIB);
    call.acknowledge();
    expect((await call.result).metadata).toMatchObject({ status: 0 });
    expect(call.byteLength).toBe(6_888_896);
  });

  test("[B056] other requests are answered under a flood", async () => {
    const call = bash.start("yes 'a line of text'", { timeout: 600_000 }, { keepOutput: false });
    while (call.byteLength < MIB) await call.nextDelta();
    for (let answered = 0; answered < 20; answered += 1) await bash.plugin.ping();
    call.cancel();
    await expect(call.result).rejects.toMatchObject({ code: "cancelled" });
  });

  test("[B056] the timeout fires under a flood", async () => {
    const call = bash.start("yes 'a line of text'", { timeout: 1000 }, { keepOutput: false });
    await expect(call.result).rejects.toMatchObject({ code: "timeout" });
  });
});

function watchMemory(pid: number): { growth(): number } {
  const resident = () => Number(execFileSync("ps", ["-o", "rss=", "-p", String(pid)])) * 1024;
  const before = resident();
  return { growth: () => resident() - before };
}
