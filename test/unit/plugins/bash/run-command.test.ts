import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, onTestFinished, test, vi } from "vitest";
import { PipePool } from "../../../../plugins/bash/src/pipe-pool.ts";
import { runCommand } from "../../../../plugins/bash/src/run-command.ts";

afterEach(() => {
  vi.useRealTimers();
});

test("[T-071] a handler of SIGTERM may clean up and print", async () => {
  const folder = await mkdtemp(join(tmpdir(), "cookie-command-"));
  const pipes = new PipePool(folder);
  onTestFinished(async () => {
    await pipes.close();
    await rm(folder, { recursive: true });
  });
  const stop = new AbortController();
  let printed = "";
  // the time that is given before SIGKILL does not pass
  vi.useFakeTimers({ toFake: ["performance"] });
  const running = runCommand({
    shell: "/bin/bash",
    command: "trap 'echo cleaned; exit' TERM; echo ready; while :; do sleep 0.05; done",
    cwd: folder,
    marker: `${process.pid}.test/handler`,
    timeoutMs: 600_000,
    stdin: null,
    signal: stop.signal,
    send: async (output) => {
      for (const { stream, bytes } of output) {
        if (stream === "stdout") printed += Buffer.from(bytes).toString();
      }
      if (printed === "ready\n") stop.abort();
    },
    pipes,
    live: new Set(),
  });
  await expect(running).rejects.toMatchObject({ code: "cancelled" });
  expect(printed).toBe("ready\ncleaned\n");
});
