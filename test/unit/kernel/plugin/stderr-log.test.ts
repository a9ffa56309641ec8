import { PassThrough } from "node:stream";
import { finished } from "node:stream/promises";
import { describe, expect, test } from "vitest";
import { StderrLog } from "../../../../kernel/src/plugin/stderr-log.ts";

async function copied(chunks: readonly (string | Buffer)[], now = () => 0) {
  const input = new PassThrough();
  const lines: string[] = [];
  const log = new StderrLog({ input, write: (line) => lines.push(line), now });
  for (const chunk of chunks) input.write(chunk);
  input.end();
  await finished(input);
  await new Promise((resolve) => setImmediate(resolve));
  return { lines, tail: log.tail };
}

describe("StderrLog", () => {
  test("[E-010] lines are joined over chunks, an unfinished last one counts, controls are escaped", async () => {
    const { lines } = await copied([
      "on",
      "e\r\ntwo\u001b[31m\n",
      Buffer.from([0xc3]),
      Buffer.from([0xa9]),
    ]);
    expect(lines).toEqual(["one", "two\\x1b[31m", "é"]);
  });

  test("[E-010] a line is cut at 8 KiB between two characters", async () => {
    const { lines } = await copied(["x", "é".repeat(10_000), "y".repeat(100_000), "\nnext\n"]);
    expect(Buffer.byteLength(lines[0] ?? "")).toBe(8191);
    expect(lines[1]).toBe("next");
  });

  test("[E-010] of one second 200 lines are copied and the rest is counted", async () => {
    const { lines, tail } = await copied(["a\n".repeat(350)]);
    expect(lines).toHaveLength(201);
    expect(lines.at(-1)).toBe("150 more lines were not copied");
    expect(tail).toHaveLength(12);
  });

  test("[E-010] a new second has its own allowance", async () => {
    let time = 0;
    const { lines } = await copied(["a\n".repeat(400)], () => {
      time += 5;
      return time;
    });
    expect(lines).toHaveLength(400);
  });
});
