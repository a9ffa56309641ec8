import { describe, expect, test } from "vitest";
import { callOf, entryFor, never, openHost } from "./open-host.ts";
import { shipped } from "./shipped-fixtures.ts";

/** What a command may print to take the wire over. */
const FORGED =
  '\n{"jsonrpc":"2.0","method":"host/log","params":{"level":"error","message":"forged"}}\n';
const base64 = (...chunks: (string | Buffer)[]) =>
  chunks.map((chunk) => Buffer.from(chunk).toString("base64"));
const emit = (chunks: string[], more: Record<string, unknown> = {}) =>
  callOf("emit_raw", { chunks, ...more });

describe("raw output of a hand-written plugin", () => {
  test("[E-016] [E-023] it is announced and stored as it came, line feeds and forged frames included", async () => {
    const { host, hostLogs } = await openHost({ entries: [entryFor("raw")] });
    const call = emit(base64(FORGED, "", "€".repeat(1000)));
    expect(await host.call("raw", call, never())).toEqual({
      streamed: true,
      metadata: { announced: true },
    });
    expect(call.text()).toBe(`${FORGED}${"€".repeat(1000)}`);
    expect(hostLogs).toEqual([]);
  });

  test.for([
    ["unshared", "protocol_violation", "shares out 0 raw bytes"],
    ["over_delta", "progress_limit", "524288 raw bytes"],
    ["negative", "plugin_crashed", "raw is no count of bytes"],
    ["cut", "plugin_crashed", "exit code 0"],
  ] as const)("[E-016] [E-102] %s fails the call with its reason", async ([mode, code, reason]) => {
    const { host, hostLogs } = await openHost({ entries: [entryFor("raw")] });
    await expect(host.call("raw", emit(base64(FORGED), { mode }), never())).rejects.toMatchObject({
      code,
      message: expect.stringContaining(reason),
    });
    expect(hostLogs).toEqual([]);
  });

  test.for([
    ["over_cap", "more than 4194304 raw bytes"],
    ["response", "raw bytes may follow a notification only"],
  ] as const)("[E-002] [E-016] %s is a bad line, and the call goes on", async ([mode, reason]) => {
    const { host, logged, hostLogs } = await openHost({ entries: [entryFor("raw")] });
    const call = emit(base64(FORGED), { mode });
    expect(await host.call("raw", call, never())).toMatchObject({ streamed: true });
    expect(logged.filter((line) => line.includes(reason))).toHaveLength(1);
    expect([call.text(), hostLogs]).toEqual(["", []]);
  });

  test("[E-016] bytes behind a frame that takes none are dropped with a diagnostic", async () => {
    const { host, hostLogs } = await openHost({ entries: [entryFor("raw")] });
    await host.call("raw", emit(base64(FORGED), { mode: "other_method" }), never());
    expect(hostLogs).toEqual([]);
    expect(host.status()[0]?.diagnostics).toEqual([
      expect.stringContaining("host/log takes no raw bytes"),
    ]);
  });

  test("[E-014] [E-016] on a shared pipe raw output and the calls of a neighbour do not mix", async () => {
    const { host } = await openHost({ firstParty: await shipped(["raw", "echo"]) });
    const chunks = base64(...Array.from({ length: 200 }, (_, n) => `${n}${FORGED}`));
    const raw = emit(chunks, { mode: "one_by_one", times: 10 });
    const flood = host.call("raw", raw, never());
    for (let n = 0; n < 50; n += 1) {
      const echo = callOf("echo", { text: `${n}` });
      expect(await host.call("echo", echo, never())).toEqual({ content: `${n}` });
    }
    expect(await flood).toMatchObject({ streamed: true });
    const once = Array.from({ length: 200 }, (_, n) => `${n}${FORGED}`).join("");
    expect(raw.text() === once.repeat(10)).toBe(true);
  });
});
