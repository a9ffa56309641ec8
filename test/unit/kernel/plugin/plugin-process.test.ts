import { tmpdir } from "node:os";
import { afterEach, expect, onTestFinished, test, vi } from "vitest";
import { PluginProcess } from "../../../../kernel/src/plugin/plugin-process.ts";

afterEach(() => {
  vi.useRealTimers();
});

function start(): PluginProcess {
  const started = new PluginProcess({
    label: "idle",
    command: process.execPath,
    args: ["-e", "setInterval(() => {}, 1000)"],
    cwd: tmpdir(),
    env: {},
    badLines: { count: 1, windowMs: 1 },
    logger: { log: () => undefined },
  });
  onTestFinished(() => started.kill("the test ended"));
  return started;
}

test("[B145] one whose pipe has closed tells its own end when it comes within two seconds", async () => {
  const [leaving, staying] = [start(), start()];
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  leaving.expectExit();
  staying.expectExit();
  vi.advanceTimersByTime(1999);
  process.kill(leaving.pid ?? 0, "SIGTERM");
  expect(await leaving.exit).toMatchObject({ signal: "SIGTERM", cause: null });
  expect(staying.ended).toBe(false);
  vi.advanceTimersByTime(1);
  expect(await staying.exit).toMatchObject({ signal: "SIGKILL", cause: "closed its stdout" });
});
