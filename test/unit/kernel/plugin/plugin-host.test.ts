import { cp, readdir, readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { CookieError, ToolCallId } from "@cookie-agent/sdk/protocol";
import { describe, expect, test } from "vitest";
import { isAlive } from "../../../support/is-alive.ts";
import {
  callOf,
  entryFor,
  eventually,
  FIXTURES,
  never,
  openHost,
  SESSION,
  tempDirectory,
} from "./open-host.ts";

interface ProcessFacts {
  readonly pid: number;
  readonly cwd: string;
  readonly env: string[];
  readonly introduction: { readonly paths: { readonly data: string; readonly scratch: string } };
  readonly call: unknown;
}

async function describeProcess(
  host: Awaited<ReturnType<typeof openHost>>["host"],
  call = callOf("describe_process"),
): Promise<ProcessFacts> {
  const { content } = await host.call("echo", call, never());
  return JSON.parse(content ?? "null") as ProcessFacts;
}

/** A copy of a fixture whose manifest is changed. */
async function copyFixture(name: string, change: (manifest: Record<string, unknown>) => void) {
  const parent = await tempDirectory();
  const directory = join(parent, name);
  await cp(join(FIXTURES, name), directory, { recursive: true });
  await cp(join(FIXTURES, "wire.mjs"), join(parent, "wire.mjs"));
  const file = join(directory, "cookie-plugin.json");
  const manifest = JSON.parse(await readFile(file, "utf8")) as Record<string, unknown>;
  change(manifest);
  await writeFile(file, JSON.stringify(manifest));
  return { directory, file };
}

const python = {
  launch: {
    kind: "command" as const,
    command: "python3",
    args: [join(FIXTURES, "without-manifest.py")],
  },
  env: { PATH: process.env["PATH"] ?? "" },
};

describe("starting", () => {
  test("[E-031] [E-052] the manifest lists tools while no process runs, the call starts one", async () => {
    const { host } = await openHost({ entries: [entryFor("echo")] });
    const [facts] = host.plugins();
    expect(facts?.tools.map(({ declaration }) => declaration.name)).toContain("echo");
    expect(host.status()).toMatchObject([{ state: "disconnected", pid: null, tier: "untrusted" }]);

    const answer = await host.call("echo", callOf("echo", { text: "héllo" }), never());

    expect(answer).toEqual({ content: "héllo" });
    expect(host.status()).toMatchObject([{ state: "connected", pid: expect.any(Number) }]);
  });

  test("[E-057] a warmed plugin starts at once and its failure is silent until the call", async () => {
    const { host } = await openHost({
      entries: [entryFor("echo"), entryFor("crash", { env: { CRASH_IN_INITIALIZE: "1" } })],
    });
    host.warm("echo");
    host.warm("crash");
    host.warm("nobody");
    await eventually(() => host.status().every(({ state }) => state !== "connecting"));
    expect(host.status()).toMatchObject([{ state: "connected" }, { state: "failed" }]);
  });

  test("[E-040] a disabled plugin is read but never started", async () => {
    const { host } = await openHost({ entries: [entryFor("echo", { enabled: false })] });
    host.warm("echo");
    expect(host.status()).toMatchObject([{ state: "disabled", version: "1.0.0", tools: [] }]);
    await expect(host.call("echo", callOf("echo", { text: "x" }), never())).rejects.toMatchObject({
      code: "plugin_unavailable",
    });
  });

  test("[C-234] what a workspace names is not started once the workspace changed, what runs goes on", async () => {
    let trusted = true;
    const layer = "workspace";
    const { host } = await openHost({
      entries: [entryFor("echo", { layer }), entryFor("slow", { layer }), entryFor("deaf")],
      workspaceStillTrusted: () => Promise.resolve(trusted),
    });
    const say = () => host.call("echo", callOf("echo", { text: "hi" }), never());
    await say();
    trusted = false;

    expect(await say()).toEqual({ content: "hi" });
    const refused = {
      code: "plugin_unavailable",
      message: expect.stringContaining("cookie trust"),
    };
    await expect(host.call("slow", callOf("wait_ms", { ms: 1 }), never())).rejects.toMatchObject(
      refused,
    );
    expect(await host.restart("echo")).toMatchObject({ state: "failed", pid: null, tools: [] });
    await expect(say()).rejects.toMatchObject(refused);
    expect(await host.restart("deaf")).toMatchObject({ state: "connected" });
  });

  test("[E-050] [E-180] a command without manifest starts with the kernel and brings its tools", async () => {
    const { host } = await openHost({ entries: [entryFor("snake", python)] });
    await host.ready();
    expect(host.status()).toMatchObject([
      { state: "connected", activation: "startup", tools: ["py_echo"], tier: "untrusted" },
    ]);
    const answer = await host.call("snake", callOf("py_echo", { text: "hi" }), never());
    expect(answer).toEqual({ content: "hi" });
  });

  test("[E-051] a plugin with activation session starts with the first session", async () => {
    const { directory } = await copyFixture("echo", (manifest) => {
      manifest["activation"] = "session";
    });
    const { host } = await openHost({
      entries: [entryFor("echo", { launch: { kind: "path", directory } })],
    });
    await host.ready();
    expect(host.status()).toMatchObject([{ state: "disconnected", activation: "session" }]);
    await host.activateSession();
    expect(host.status()).toMatchObject([{ state: "connected" }]);
  });

  test("[E-060] a plugin without manifest loses its tools with its process", async () => {
    const { host } = await openHost({ entries: [entryFor("snake", python)] });
    await host.ready();
    process.kill(host.status()[0]?.pid ?? 0, "SIGKILL");
    await eventually(() => host.status()[0]?.state === "failed");
    expect(host.plugins()[0]?.tools).toEqual([]);
  });

  test("[E-042] plugins stand in configuration order", async () => {
    const { host } = await openHost({
      entries: [entryFor("slow"), entryFor("echo"), entryFor("deaf")],
    });
    expect(host.plugins().map(({ name }) => name)).toEqual(["slow", "echo", "deaf"]);
  });

  test("[E-045] [B149] one plugin that fails to start stops no other", async () => {
    const { host } = await openHost({
      entries: [
        entryFor("echo"),
        entryFor("broken", {
          launch: { kind: "command", command: "/does/not/exist", args: [] },
        }),
        entryFor("slow"),
      ],
    });
    await host.ready();
    expect(await host.call("echo", callOf("echo", { text: "1" }), never())).toEqual({
      content: "1",
    });
    expect((await host.call("slow", callOf("wait_ms", { ms: 1 }), never())).content).toBeDefined();
    expect(host.status()[1]).toMatchObject({
      state: "failed",
      reason: expect.stringMatching(/ENOENT/),
    });
  });

  test("[B148] a plugin that dies while loading is named with its reason and last words", async () => {
    const { host } = await openHost({
      entries: [
        entryFor("unloadable", {
          launch: {
            kind: "command",
            command: process.execPath,
            args: [join(FIXTURES, "unloadable.mjs")],
          },
        }),
      ],
    });
    await host.ready();
    expect(host.status()).toMatchObject([
      {
        plugin: "unloadable",
        state: "failed",
        reason: expect.stringMatching(/exit code 1.*this entry is broken/s),
      },
    ]);
  });

  test("[E-043] a plugin that does not answer the handshake fails after its startup timeout", async () => {
    const { host } = await openHost({
      entries: [
        entryFor("mute", {
          startupTimeoutMs: 300,
          launch: {
            kind: "command",
            command: process.execPath,
            args: ["-e", "process.stdin.resume(); process.stdin.on('end', () => process.exit())"],
          },
        }),
      ],
    });
    await host.ready();
    expect(host.status()).toMatchObject([
      { state: "failed", reason: expect.stringMatching(/timeout/), pid: null },
    ]);
  });

  test("[B152] a plugin whose files were fixed starts on restart", async () => {
    const { directory, file } = await copyFixture("echo", (manifest) => {
      manifest["surprise"] = true;
    });
    const { host } = await openHost({
      entries: [entryFor("echo", { launch: { kind: "path", directory } })],
    });
    expect(host.status()).toMatchObject([
      { state: "failed", reason: expect.stringMatching(/surprise/), tools: [] },
    ]);
    const manifest = JSON.parse(await readFile(file, "utf8")) as Record<string, unknown>;
    delete manifest["surprise"];
    await writeFile(file, JSON.stringify(manifest));

    expect(await host.restart("echo")).toMatchObject({ state: "connected", reason: null });
    expect(await host.call("echo", callOf("echo", { text: "again" }), never())).toEqual({
      content: "again",
    });
  });

  test("[E-064] a reload waits for the calls that run, keeps new ones back and takes the entry as it is now", async () => {
    const { host } = await openHost({ entries: [entryFor("slow"), entryFor("echo")] });
    const before = callOf("wait_ms", { ms: 60_000 });
    const stop = new AbortController();
    const running = host.call("slow", before, stop.signal);
    await eventually(() => host.status()[0]?.in_flight === 1);
    const [{ pid } = { pid: null }] = host.status();
    const entries = [entryFor("echo"), entryFor("slow", { config: { changed: true } })];
    const reloading = host.reload("slow", { entries, secretEnvNames: new Set() });
    const later = host.call("slow", callOf("wait_ms", { ms: 1 }), never());
    expect((await host.call("echo", callOf("echo", { text: "free" }), never())).content).toBe(
      "free",
    );
    expect(host.status().find(({ plugin }) => plugin === "slow")).toMatchObject({
      pid,
      in_flight: 1,
    });
    stop.abort();
    await running.catch(() => undefined);
    const status = await reloading;
    expect(status).toMatchObject({ state: "connected", pid: expect.any(Number) });
    expect(status.pid).not.toBe(pid);
    expect((await later).content).toBeDefined();
    expect(host.plugins().map(({ name }) => name)).toEqual(["echo", "slow"]);
  });

  test("[E-064] what does not finish in time is cancelled, and the reload goes on", async () => {
    const { host } = await openHost({
      entries: [entryFor("deaf")],
      limits: { drainMs: 50, cancelCleanupMs: 50 },
    });
    const running = host.call("deaf", callOf("ignore_cancel", { ms: 60_000 }), never());
    running.catch(() => undefined);
    await eventually(() => host.status()[0]?.in_flight === 1);
    const entries = [entryFor("deaf", { shutdownGraceMs: 100 })];
    const status = await host.reload("deaf", { entries, secretEnvNames: new Set() });
    expect(status).toMatchObject({ state: "connected", in_flight: 0 });
    await expect(running).rejects.toMatchObject({ code: "shutting_down" });
  });

  test("[B136] [B152] a reload that fails keeps the plugin's names, and a later one mends it", async () => {
    const { directory, file } = await copyFixture("echo", () => undefined);
    const entries = [entryFor("echo", { launch: { kind: "path", directory } })];
    const config = { entries, secretEnvNames: new Set<string>() };
    const { host } = await openHost(config);
    await host.call("echo", callOf("echo", { text: "1" }), never());
    const good = await readFile(file, "utf8");
    await writeFile(file, "{");
    const failed = await host.reload("echo", config);
    expect(failed).toMatchObject({ state: "failed", pid: null, tools: [] });
    expect(host.plugins()[0]?.held).toContain("echo");
    await expect(host.call("echo", callOf("echo", { text: "2" }), never())).rejects.toMatchObject({
      code: "plugin_unavailable",
    });
    await writeFile(file, good);
    expect(await host.reload("echo", config)).toMatchObject({ state: "connected", reason: null });
    expect(host.plugins()[0]?.held).toBeUndefined();
    expect((await host.call("echo", callOf("echo", { text: "3" }), never())).content).toBe("3");
  });

  test("[E-064] a plugin that the configuration names no more ends, a new one begins", async () => {
    const { host } = await openHost({ entries: [entryFor("echo"), entryFor("deaf")] });
    await host.call("echo", callOf("echo", { text: "1" }), never());
    const pid = host.status()[0]?.pid ?? 0;
    const config = {
      entries: [entryFor("slow"), entryFor("deaf")],
      secretEnvNames: new Set<string>(),
    };
    expect(await host.reload("echo", config)).toMatchObject({
      state: "disabled",
      reason: expect.stringContaining("does not name it"),
    });
    expect(await host.reload("slow", config)).toMatchObject({ state: "connected" });
    expect(host.plugins().map(({ name }) => name)).toEqual(["slow", "deaf"]);
    await eventually(() => !isAlive(pid));
    await expect(host.reload("nobody", config)).rejects.toMatchObject({ code: "plugin_missing" });
    await expect(host.restart("nobody")).rejects.toMatchObject({ code: "plugin_missing" });
  });

  test("[E-113] a trusted plugin whose manifest changed does not run", async () => {
    const { host } = await openHost({
      entries: [entryFor("echo", { trust: "trusted", integrity: `sha256:${"0".repeat(64)}` })],
    });
    expect(host.status()).toMatchObject([
      {
        state: "failed",
        tier: "trusted",
        reason: expect.stringMatching(/integrity_mismatch/),
        tools: [],
      },
    ]);
  });

  test("[E-113] a trusted plugin whose pinned program changed does not run", async () => {
    const { directory } = await copyFixture("echo", (manifest) => {
      manifest["runtime"] = { kind: "node", entry: "main.mjs", sha256: "0".repeat(64) };
    });
    const { host } = await openHost({
      entries: [entryFor("echo", { launch: { kind: "path", directory } })],
    });
    const digest = host.plugins()[0]?.manifestDigest ?? "";
    const trusted = await openHost({
      entries: [
        entryFor("echo", {
          launch: { kind: "path", directory },
          trust: "trusted",
          integrity: digest,
        }),
      ],
    });
    await expect(
      trusted.host.call("echo", callOf("echo", { text: "x" }), never()),
    ).rejects.toMatchObject({
      code: "plugin_unavailable",
      message: expect.stringContaining("integrity_mismatch"),
    });
  });
});

describe("what a process gets", () => {
  test("[E-046] an untrusted plugin sees its own variables and nothing of the kernel's", async () => {
    const { host } = await openHost({
      entries: [entryFor("echo", { env: { OWN: "1" } })],
      env: { PATH: "/bin", SECRET: "x", COOKIE_DAEMON_TOKEN: "t" },
    });
    expect((await describeProcess(host)).env).toEqual(["COOKIE_PLUGIN_PROTOCOL", "OWN"]);
  });

  test("[E-023] [E-048] it is told its version, tier, config and private directories", async () => {
    const { host, root, workspaceRoot } = await openHost({
      entries: [entryFor("echo", { config: { colour: "red" } })],
    });
    const { introduction, cwd, pid } = await describeProcess(host);
    expect(introduction).toMatchObject({
      protocol_version: "0.1.0",
      engine_version: "0.1.0",
      plugin: {
        name: "echo",
        tier: "untrusted",
        manifest_digest: expect.stringMatching(/^sha256:/),
      },
      capabilities: { services: ["artifacts.write", "artifacts.read"] },
      config: { colour: "red" },
      limits: { frame_bytes: 4_194_304, progress_window_bytes: 1_048_576 },
      paths: { workspace: workspaceRoot, data: join(root, "plugins/echo/data") },
    });
    expect(cwd).toBe(workspaceRoot);
    for (const path of [introduction.paths.data, introduction.paths.scratch]) {
      expect((await stat(path)).mode & 0o777).toBe(0o700);
    }
    await host.close();
    expect(isAlive(pid)).toBe(false);
    await expect(stat(introduction.paths.scratch)).rejects.toMatchObject({ code: "ENOENT" });
    expect(await readdir(introduction.paths.data)).toEqual([]);
  });

  test("[E-010] [E-022] stderr is copied to the log, and host/log may precede the introduction", async () => {
    const { host, logged, hostLogs } = await openHost({
      entries: [entryFor("echo"), entryFor("chatty")],
    });
    await host.call("echo", callOf("echo", { text: "x" }), never());
    expect(hostLogs).toEqual([{ level: "info", message: "echo is here" }]);
    // far more than may be copied in the time that this takes anywhere
    await host.call("chatty", callOf("chat", { mode: "stderr", bytes: 10_000 }), never());
    const dropped = () =>
      logged.map((line) => Number(/^(\d+) more lines were not copied$/.exec(line)?.[1] ?? 0));
    const copied = () => logged.filter((line) => line.startsWith("line "));
    const sum = () => dropped().reduce((all, count) => all + count, copied().length);
    await eventually(() => sum() === 10_000);
    expect(copied().slice(0, 200)).toEqual(Array.from({ length: 200 }, (_, n) => `line ${n}`));
    expect(copied().length).toBeLessThan(10_000);
  });
});

describe("calling", () => {
  test("[E-090] one request carries the call as it was approved and a context of its own", async () => {
    const { host } = await openHost({ entries: [entryFor("echo")] });
    const call = callOf("describe_process", {}, { params: { resource: "label", stdin: true } });
    expect((await describeProcess(host, call)).call).toEqual({
      ...call.params,
      context_id: expect.any(String),
    });
  });

  test("a tool that the plugin does not have is unavailable", async () => {
    const { host } = await openHost({ entries: [entryFor("echo")] });
    await expect(host.call("echo", callOf("sing"), never())).rejects.toMatchObject({
      code: "plugin_unavailable",
    });
    await expect(host.call("nobody", callOf("sing"), never())).rejects.toMatchObject({
      code: "plugin_unavailable",
    });
  });
});

describe("preparing", () => {
  const params = (text: string, more: Record<string, unknown> = {}) => {
    const { params: call } = callOf("stage", { text, ...more });
    const { tool, session_id, run_id, invocation_id, arguments: args, cwd, workspace_root } = call;
    return { tool, session_id, run_id, invocation_id, arguments: args, cwd, workspace_root };
  };

  test("[E-082] [E-084] a dynamic tool is prepared by its plugin and its token is good for one call", async () => {
    const { host } = await openHost({ entries: [entryFor("echo")] });
    const prepared = await host.prepare("echo", params("a"), never());
    expect(prepared).toMatchObject({
      resources: [{ action: "plugin", label: "stage a" }],
      prepared: "token-1",
      generation: expect.any(Number),
    });
    const call = (generation: number) =>
      host.call(
        "echo",
        callOf("stage", { text: "a" }, { generation, params: { prepared: "token-1" } }),
        never(),
      );
    expect(await call(prepared.generation)).toEqual({ content: "staged a" });
    await expect(call(prepared.generation)).rejects.toMatchObject({
      code: "prepared_capability_lost",
    });
  });

  test("[E-083] a label outside the tool's permission name is refused", async () => {
    const { host } = await openHost({ entries: [entryFor("echo")] });
    await expect(
      host.prepare("echo", params("a", { label: "anything" }), never()),
    ).rejects.toMatchObject({ code: "prepare_failed" });
  });

  test("[E-084] discarded tokens are given back", async () => {
    const { host } = await openHost({ entries: [entryFor("echo")] });
    const { generation } = await host.prepare("echo", params("a"), never());
    host.discard("echo", ["token-1"]);
    const call = callOf("stage", { text: "a" }, { generation, params: { prepared: "token-1" } });
    await expect(host.call("echo", call, never())).rejects.toMatchObject({
      code: "prepared_capability_lost",
    });
  });

  test("a revalidation tells what changed", async () => {
    const { host } = await openHost({ entries: [entryFor("echo")] });
    const invocationId = callOf("stage").params.invocation_id;
    const check = async (text: string) => {
      const { prepared = "", generation } = await host.prepare("echo", params(text), never());
      return host.revalidate("echo", { invocationId, prepared, generation }, never());
    };
    await check("fresh");
    await expect(check("stale")).rejects.toMatchObject({ code: "operation_changed" });
  });

  test("[E-060] [S-004] a token does not outlive the process that gave it", async () => {
    const { host } = await openHost({ entries: [entryFor("echo")] });
    const { generation, prepared = "" } = await host.prepare("echo", params("a"), never());
    process.kill(host.status()[0]?.pid ?? 0, "SIGKILL");
    await eventually(() => host.status()[0]?.state === "disconnected");
    const call = callOf("stage", { text: "a" }, { generation, params: { prepared } });
    await expect(host.call("echo", call, never())).rejects.toMatchObject({
      code: "prepared_capability_lost",
    });
    const again = await host.prepare("echo", params("a"), never());
    expect(again.generation).toBeGreaterThan(generation);
  });
});

describe("crashes", () => {
  test("[B145] [S-004] every open call fails at once with the signal and the last output, others go on", async () => {
    const { host } = await openHost({ entries: [entryFor("crash"), entryFor("echo")] });
    const calls = [1, 2, 3].map(() => host.call("crash", callOf("crash_now"), never()));
    const outcomes = await Promise.allSettled(calls);
    for (const outcome of outcomes) {
      expect(outcome).toMatchObject({
        status: "rejected",
        reason: {
          code: "plugin_crashed",
          message: expect.stringMatching(/signal SIGKILL.*about to crash/s),
          data: { signal: "SIGKILL" },
        },
      });
    }
    expect(await host.call("echo", callOf("echo", { text: "ok" }), never())).toEqual({
      content: "ok",
    });
  });

  test("[E-063] a crashed plugin starts again on demand, with pauses, and is given up after five crashes", async () => {
    const { host } = await openHost({
      entries: [entryFor("crash")],
      limits: { restartDelayMs: 10, maxRestartDelayMs: 40 },
    });
    for (let crashes = 1; crashes <= 5; crashes += 1) {
      await expect(
        host.call("crash", callOf("crash_now", { how: "exit" }), never()),
      ).rejects.toMatchObject({ code: "plugin_crashed" });
    }
    expect(host.status()).toMatchObject([
      { state: "failed", reason: expect.stringMatching(/exit code 7/), restarts: 4 },
    ]);
    await expect(host.call("crash", callOf("survive"), never())).rejects.toMatchObject({
      code: "plugin_unavailable",
    });
    expect(await host.restart("crash")).toMatchObject({ state: "connected" });
  });

  test("[E-063] a plugin with restart never stays failed", async () => {
    const { host } = await openHost({ entries: [entryFor("chatty")] });
    await host.call("chatty", callOf("chat", { mode: "quiet" }), never());
    process.kill(host.status()[0]?.pid ?? 0, "SIGKILL");
    const codes: unknown[] = [];
    // The first ones may still meet the dying process; none may start another.
    while (codes.at(-1) !== "plugin_unavailable") {
      const call = host.call("chatty", callOf("chat", { mode: "quiet" }), never());
      codes.push(await call.then(() => "answered").catch(({ code }: CookieError) => code));
    }
    expect(host.status()).toMatchObject([{ state: "failed", restarts: 0 }]);
    expect(host.plugins()[0]?.tools).toHaveLength(1);
  });

  test("[E-061] a crashed call is never repeated by itself, a retry-safe one of a trusted plugin once", async () => {
    const directory = join(FIXTURES, "crash");
    const first = await openHost({ entries: [entryFor("crash")] });
    const integrity = first.host.plugins()[0]?.manifestDigest ?? "";
    const marker = join(first.root, "marker");
    await expect(
      first.host.call("crash", callOf("crash_once", { marker }), never()),
    ).rejects.toMatchObject({ code: "plugin_crashed" });

    const { host, root } = await openHost({
      entries: [
        entryFor("crash", { launch: { kind: "path", directory }, trust: "trusted", integrity }),
      ],
    });
    const call = callOf("crash_once", { marker: join(root, "marker") });
    expect(await host.call("crash", call, never())).toEqual({ content: "second try" });
  });

  test("[E-094] the output of a crashed call was delivered before its error", async () => {
    const { host } = await openHost({ entries: [entryFor("crash")] });
    const call = callOf("crash_now", { after_output: true, how: "kill" });
    await expect(host.call("crash", call, never())).rejects.toMatchObject({
      code: "plugin_crashed",
    });
    expect(call.text()).toBe("half of it");
  });
});

describe("stopping", () => {
  test("[E-052] a tool-activated process is stopped after its idle time and comes back on demand", async () => {
    const { directory } = await copyFixture("echo", (manifest) => {
      manifest["idle_ms"] = 100;
    });
    const { host } = await openHost({
      entries: [entryFor("echo", { launch: { kind: "path", directory } })],
    });
    const { pid } = await describeProcess(host);
    await eventually(() => !isAlive(pid) && host.status()[0]?.pid === null);
    expect(host.status()).toMatchObject([{ state: "disconnected", reason: null }]);
    expect(host.plugins()[0]?.tools).not.toEqual([]);
    expect((await describeProcess(host)).pid).not.toBe(pid);
  });

  test("[E-065] close cancels what runs and leaves no process", async () => {
    const { host } = await openHost({
      entries: [entryFor("slow")],
      limits: { cancelCleanupMs: 60_000 },
    });
    const call = callOf("wait_ms", { ms: 600_000 });
    const outcome = host.call("slow", call, never()).catch((error: unknown) => error);
    await eventually(() => host.status()[0]?.in_flight === 1);
    const pid = host.status()[0]?.pid ?? 0;
    await host.close();
    expect(await outcome).toMatchObject({ code: "shutting_down" });
    expect(call.text()).toBe("cleaning up\n");
    expect(isAlive(pid)).toBe(false);
  });

  test("[E-065] a plugin that does not leave is killed after its grace period", async () => {
    const { host } = await openHost({ entries: [entryFor("deaf", { shutdownGraceMs: 100 })] });
    const { content } = await host.call("deaf", callOf("answer"), never());
    await host.close();
    expect(isAlive(Number(content))).toBe(false);
    await expect(host.call("deaf", callOf("answer"), never())).rejects.toMatchObject({
      code: "shutting_down",
    });
  });

  test("[E-065] a plugin that is still starting is ended too", async () => {
    const { host } = await openHost({
      entries: [
        entryFor("mute", {
          launch: {
            kind: "command",
            command: process.execPath,
            args: ["-e", "setInterval(() => {}, 1000)"],
          },
        }),
      ],
    });
    await eventually(() => host.status()[0]?.pid !== null);
    const pid = host.status()[0]?.pid ?? 0;
    await host.close();
    expect(isAlive(pid)).toBe(false);
  });

  test("[E-047] the children of a plugin end with it", async () => {
    const file = join(await tempDirectory(), "pid");
    const script = `
      require("node:child_process").spawn(process.execPath, ["-e",
        "require('node:fs').writeFileSync(process.argv[1], String(process.pid)); setInterval(() => {}, 1000)",
        ${JSON.stringify(file)}], { stdio: "inherit" });
      setInterval(() => {}, 1000);`;
    const { host } = await openHost({
      entries: [
        entryFor("parent", {
          startupTimeoutMs: 600_000,
          launch: { kind: "command", command: process.execPath, args: ["-e", script] },
        }),
      ],
    });
    const childPid = async () => Number(await readFile(file, "utf8").catch(() => "0"));
    let pid = 0;
    while (pid === 0) pid = await childPid();
    await host.close();
    await eventually(() => !isAlive(pid));
  });
});

describe("host services", () => {
  test("[E-116] [E-117] a call's context serves its own session while the call is open, and not after", async () => {
    const { host, contexts } = await openHost({ entries: [entryFor("echo")] });
    const call = callOf("store", { text: "kept" });
    const { content } = await host.call("echo", call, never());
    expect(contexts).toMatchObject([
      {
        plugin: "echo",
        sessionId: SESSION,
        rootSessionId: SESSION,
        runId: call.params.run_id,
        toolCallId: call.params.invocation_id as ToolCallId,
      },
    ]);
    const { uri, context_id: context } = JSON.parse(content ?? "null") as Record<string, string>;
    const spent = await host.call("echo", callOf("fetch", { uri, context }), never());
    expect(spent).toEqual({ content: "context_invalid", is_error: true });
  });

  test("an untrusted plugin reads what its own call wrote and nothing else", async () => {
    const { host } = await openHost({ entries: [entryFor("echo")] });
    const other = `artifact://${"1".repeat(64)}`;
    const approved = callOf("fetch", { uri: other }, { approvedLabels: [other] });
    expect(await host.call("echo", approved, never())).toEqual({
      content: "permission_denied",
      is_error: true,
    });
    const malformed = callOf("fetch", { uri: "artifact://sha256/x" });
    expect((await host.call("echo", malformed, never())).content).toBe("artifact_uri");
  });

  test("above that, what was approved for the call is read too", async () => {
    const { host: first } = await openHost({ entries: [entryFor("echo")] });
    const integrity = first.plugins()[0]?.manifestDigest ?? "";
    const { host } = await openHost({
      entries: [entryFor("echo", { trust: "trusted", integrity })],
    });
    const uri = `artifact://${"1".repeat(64)}/stdout`;
    const read = (approvedLabels: string[]) =>
      host.call("echo", callOf("fetch", { uri }, { approvedLabels }), never());
    expect(await read([uri])).toEqual({ content: "page" });
    expect((await read([`artifact://${"1".repeat(64)}`])).content).toBe("permission_denied");
  });

  test("[E-025] nothing that a running plugin asks for changes its capabilities or tools", async () => {
    const { host } = await openHost({ entries: [entryFor("wilful")] });
    const ask = async (method: string, params: object) => {
      const { content } = await host.call("wilful", callOf("ask", { method, params }), never());
      return content;
    };
    const before = host.plugins()[0]?.tools;
    expect(await ask("host/tools/list_changed", { tools: [] })).toBe("not_granted");
    expect(await ask("plugin/initialize", { capabilities: { host: ["artifacts.read"] } })).toBe(
      "method_not_found",
    );
    const uri = `artifact://${"0".repeat(64)}`;
    expect(await ask("host/artifacts/write", { text: "x" })).toContain(uri);
    expect(await ask("host/artifacts/read", { uri })).toBe("not_granted");
    expect(host.plugins()[0]?.tools).toEqual(before);
  });

  test("[B134] no tool reaches another one: a plugin can ask for nothing that would run a call", async () => {
    const { host } = await openHost({ entries: [entryFor("wilful"), entryFor("echo")] });
    const call = { tool: "echo", arguments: { text: "behind the guard" }, invocation_id: "t-2" };
    const asked = ["plugin/tools/call", "plugin/tools/prepare", "host/tools/call", "tools/call"];
    for (const method of asked) {
      const { content } = await host.call(
        "wilful",
        callOf("ask", { method, params: call }),
        never(),
      );
      expect(content).toBe("method_not_found");
    }
    expect(host.status().find(({ plugin }) => plugin === "echo")).toMatchObject({ pid: null });
  });

  test("[E-013] what goes over the wire is not logged", async () => {
    const secret = "sk-live-4711";
    const { host, logged } = await openHost({
      entries: [entryFor("echo", { config: { key: secret } }), entryFor("wilful")],
    });
    const outcomes = [
      await host.call("echo", callOf("echo", { text: secret }), never()),
      await host.call("wilful", callOf("ask", { method: secret }), never()),
      await host.call(
        "wilful",
        callOf("ask", { method: "host/artifacts/write", params: { data: secret } }),
        never(),
      ),
      await host.call("echo", callOf("stage", { text: secret }), never()).catch(() => "refused"),
    ];
    expect(outcomes).toHaveLength(4);
    await host.close();
    expect(JSON.stringify([logged, host.status()])).not.toContain(secret);
  });

  test("[E-118] a service that was not granted is refused before its params are looked at", async () => {
    const { directory } = await copyFixture("echo", (manifest) => {
      delete manifest["capabilities"];
    });
    const { host } = await openHost({
      entries: [entryFor("echo", { launch: { kind: "path", directory } })],
    });
    // An empty URI would be invalid, an unknown context too.
    const call = callOf("fetch", { uri: "", context: "unknown" });
    expect(await host.call("echo", call, never())).toEqual({
      content: "not_granted",
      is_error: true,
    });
  });
});
