import { describe, expect, test } from "vitest";
import { isAlive } from "../../../support/is-alive.ts";
import { callOf, eventually, never, type OpenedHost, openHost } from "./open-host.ts";
import { shipped } from "./shipped-fixtures.ts";

const pids = ({ host }: OpenedHost) => host.status().map(({ pid }) => pid);
const echo = (text: string) => callOf("echo", { text });

describe("a shared host process", () => {
  test("[E-058] the plugins of a group live in one process, each with its own handshake", async () => {
    const opened = await openHost({ firstParty: await shipped(["echo", "slow"]) });
    const { host } = opened;
    expect(pids(opened)).toEqual([null, null]);
    const [first, second] = await Promise.all([
      host.call("echo", echo("a"), never()),
      host.call("slow", callOf("wait_ms", { ms: 1 }), never()),
    ]);
    expect(first).toEqual({ content: "a" });
    expect(second.content).toContain("waited");
    const [a, b] = pids(opened);
    expect(a).toBe(b);
    expect(host.status()).toMatchObject([
      { tier: "first_party", source: "bundled" },
      { tier: "first_party", source: "bundled" },
    ]);
  });

  test("[E-058] a crash counts for every attached plugin and the group starts again as one", async () => {
    const opened = await openHost({ firstParty: await shipped(["echo", "crash"]) });
    const { host } = opened;
    await host.call("echo", echo("a"), never());
    const before = pids(opened)[0];
    await expect(host.call("crash", callOf("crash_now"), never())).rejects.toMatchObject({
      code: "plugin_crashed",
      message: expect.stringContaining("SIGKILL"),
    });
    await eventually(() => host.status().every(({ state }) => state === "disconnected"));
    await Promise.all([
      host.call("echo", echo("b"), never()),
      host.call("crash", callOf("survive"), never()),
    ]);
    expect(pids(opened)[0]).toBe(pids(opened)[1]);
    expect(pids(opened)[0]).not.toBe(before);
  });

  test("[E-045] [B149] an entry that cannot be loaded fails alone", async () => {
    const { host } = await openHost({
      firstParty: await shipped(["echo", "slow"], (manifest, name) => {
        if (name === "slow") {
          manifest["runtime"] = { kind: "node", entry: "../unloadable.mjs", group: "core" };
        }
      }),
    });
    await expect(host.call("slow", callOf("wait_ms", { ms: 1 }), never())).rejects.toMatchObject({
      code: "plugin_unavailable",
      message: expect.stringContaining("this entry is broken"),
    });
    expect(await host.call("echo", echo("fine"), never())).toEqual({ content: "fine" });
    expect(host.status()).toMatchObject([{ state: "connected" }, { state: "failed" }]);
  });

  test("[E-103] a flood beyond the window fails its own call and leaves the neighbours alone", async () => {
    const { host } = await openHost({ firstParty: await shipped(["flood", "echo"]) });
    await host.call("echo", echo("warm"), never());
    const call = callOf(
      "flood",
      { bytes: 8 * 1024 * 1024 },
      { onProgress: () => new Promise((resolve) => setTimeout(resolve, 200, 0)) },
    );
    const flooding = host.call("flood", call, never()).catch((error: unknown) => error);
    expect(await host.call("echo", echo("calm"), never())).toEqual({ content: "calm" });
    expect(await flooding).toMatchObject({ code: "progress_limit" });
    expect(await host.call("echo", echo("after"), never())).toEqual({ content: "after" });
  });

  test("[E-103] a flood that heeds the acknowledgements arrives whole", async () => {
    const { host } = await openHost({ firstParty: await shipped(["flood"]) });
    const call = callOf("flood", { bytes: 8 * 1024 * 1024, heed_acks: true });
    await host.call("flood", call, never());
    expect(call.text().length).toBe(8 * 1024 * 1024);
  });

  test("the third bad line on a shared pipe ends the host", async () => {
    const { host } = await openHost({ firstParty: await shipped(["chatty"]) });
    const chat = () => host.call("chatty", callOf("chat", { mode: "too_many" }), never());
    await expect(chat()).rejects.toMatchObject({ code: "plugin_crashed" });
  });

  test("[E-052] an idle member leaves, the process goes with its last member", async () => {
    const opened = await openHost({
      firstParty: await shipped(["echo", "slow"], (manifest) => {
        manifest["idle_ms"] = 100;
      }),
    });
    const { host } = opened;
    const stop = new AbortController();
    const busy = host.call("slow", callOf("wait_ms", { ms: 600_000 }), stop.signal);
    await eventually(() => host.status()[1]?.in_flight === 1);
    await host.call("echo", echo("a"), never());
    const pid = pids(opened)[1] ?? 0;
    await eventually(() => pids(opened)[0] === null);
    expect(isAlive(pid)).toBe(true);
    stop.abort();
    await expect(busy).rejects.toMatchObject({ code: "cancelled" });
    await eventually(() => !isAlive(pid));
    expect(await host.call("echo", echo("back"), never())).toEqual({ content: "back" });
  });

  test("[E-062] a shared host tolerates a plugin that ignores a cancellation as long as it answers pings", async () => {
    const opened = await openHost({
      firstParty: await shipped(["deaf", "echo"]),
      limits: { cancelCleanupMs: 20, deafAfterMs: 50, pingTimeoutMs: 60_000 },
    });
    const { host } = opened;
    await host.call("echo", echo("a"), never());
    const pid = pids(opened)[1];
    const call = callOf("ignore_cancel", { ms: 600 }, { timeoutMs: 20 });
    await expect(host.call("deaf", call, never())).rejects.toMatchObject({ code: "timeout" });
    await eventually(() => host.status()[0]?.in_flight === 0);
    await host.call("echo", echo("b"), never());
    expect(pids(opened)[1]).toBe(pid);
  });

  test("[E-062] a shared host that does not answer a ping after a given-up call is ended", async () => {
    const opened = await openHost({
      firstParty: await shipped(["crash", "echo"]),
      limits: { cancelCleanupMs: 20, deafAfterMs: 50, pingTimeoutMs: 200 },
    });
    const { host } = opened;
    await host.call("echo", echo("a"), never());
    const pid = pids(opened)[1] ?? 0;
    const call = callOf("crash_now", { how: "block" }, { timeoutMs: 20 });
    await expect(host.call("crash", call, never())).rejects.toMatchObject({ code: "timeout" });
    await expect(host.call("echo", echo("b"), never())).rejects.toMatchObject({
      code: "plugin_crashed",
      message: expect.stringContaining("ping"),
    });
    expect(isAlive(pid)).toBe(false);
  });

  test("members with different environments cannot share: the later one fails at load", async () => {
    const { host } = await openHost({
      firstParty: await shipped(["echo", "slow"], (manifest, name) => {
        if (name === "slow") manifest["env"] = { inherit: "*" };
      }),
    });
    expect(host.status()).toMatchObject([
      { state: "disconnected" },
      { state: "failed", reason: expect.stringContaining("env") },
    ]);
  });

  test("[E-065] close ends a shared host with everything in it", async () => {
    const opened = await openHost({ firstParty: await shipped(["echo", "slow"]) });
    const { host } = opened;
    await host.call("echo", echo("a"), never());
    const running = host
      .call("slow", callOf("wait_ms", { ms: 60_000 }), never())
      .catch((error: unknown) => error);
    await eventually(() => host.status()[1]?.in_flight === 1);
    const pid = pids(opened)[0] ?? 0;
    await host.close();
    expect(await running).toMatchObject({ code: "shutting_down" });
    expect(isAlive(pid)).toBe(false);
  });

  test("restarting one plugin loads its entry anew and keeps the neighbours", async () => {
    const opened = await openHost({ firstParty: await shipped(["echo", "slow"]) });
    const { host } = opened;
    await host.call("echo", echo("a"), never());
    await host.call("slow", callOf("wait_ms", { ms: 1 }), never());
    const pid = pids(opened)[1];
    expect(await host.restart("echo")).toMatchObject({ state: "connected", pid });
    expect(await host.call("echo", echo("b"), never())).toEqual({ content: "b" });
  });
});
