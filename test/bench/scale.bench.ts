import { mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { openKernel } from "@cookie-agent/kernel";
import { CookieClient } from "@cookie-agent/sdk/client";
import {
  type ClientKey,
  RunStart,
  SessionCreate,
  type SessionId,
  SessionList,
  SessionSetPermissionMode,
} from "@cookie-agent/sdk/protocol";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createId } from "../../kernel/dist/support/create-id.js";
import { providerToml } from "../support/model-server.ts";
import { ALLOW_ALL, agentDocument, kernelOptions } from "../support/open-test-kernel.ts";
import { findLogs } from "../support/session-log.ts";
import { SessionWatch } from "../support/session-watch.ts";
import { createTempProject, type TempProject } from "../support/temp-project.ts";
import { BenchReport } from "./support/bench-report.ts";
import { type ModelProcess, startModelProcess } from "./support/model-process.ts";
import { FILE_COUNT, fileName, promptFor } from "./support/scenario.ts";
import { median, quantile } from "./support/statistics.ts";

const SESSIONS = Number(process.env["COOKIE_BENCH_SESSIONS"] ?? 200);
const TURNS = 5;
/** So that a processor is left for all sessions together: what is measured is who has to wait, not how fast it is. */
const THINK_MS = 3000;
const LISTED = Number(process.env["COOKIE_BENCH_LISTED"] ?? 5000);
const selection = { agent: "primary", model: { model: "custom.test/scripted", variant: null } };
const report = new BenchReport("scale");
let project: TempProject;
let model: ModelProcess;

beforeAll(async () => {
  project = await createTempProject();
  model = await startModelProcess(project.cwd, THINK_MS);
  const server = { baseUrl: `${model.baseUrl}/v1` };
  const config = `${providerToml(server)}\n[session_title]\ngenerate_on_first_turn = false\n`;
  await project.writeState("config.toml", config);
  await project.writeState("agents/primary.md", agentDocument(ALLOW_ALL));
  for (let index = 0; index < FILE_COUNT; index += 1) {
    await project.write(fileName(index), "a line\n".repeat(20));
  }
});
afterAll(async () => {
  report.finish();
  await model.close();
  await project.remove();
});

test(`S: ${SESSIONS} sessions at once, and what an idle one keeps`, async () => {
  const kernel = await openKernel(kernelOptions(project));
  const client = await CookieClient.connect(kernel.connect());
  await runAll(client, 1, "warm");
  await model.takeServed();
  await runAll(client, 1, "alone");
  const alone = overheads(await model.takeServed());
  const before = heapAfterCollection();
  await runAll(client, SESSIONS, "together");
  const together = overheads(await model.takeServed());
  const idleMib = (heapAfterCollection() - before) / SESSIONS / 2 ** 20;
  client.close();
  await kernel.close();

  expect(together).toHaveLength(SESSIONS * TURNS);
  const turns = report.add({
    row: "S",
    what: `${SESSIONS} sessions at once: p99 of a turn's overhead beside the median alone, ms`,
    digits: 1,
    values: new Map([
      ["cookie", [quantile(together, 0.99)]],
      ["floor", [median(alone)]],
    ]),
    bar: { times: 10, of: "floor" },
  });
  const memory = report.add({
    row: "S",
    what: "heap of an idle session, MiB",
    digits: 3,
    values: new Map([["cookie", [idleMib]]]),
    bar: 1,
  });
  expect.soft(turns.ours).toBeLessThanOrEqual(turns.limit ?? 0);
  expect.soft(memory.ours).toBeLessThanOrEqual(memory.limit ?? 0);
});

test(`S: listing ${LISTED} sessions, warm`, async () => {
  const [log = ""] = await findLogs(project);
  await multiply(dirname(log), LISTED);
  const kernel = await openKernel(kernelOptions(project));
  const client = await CookieClient.connect(kernel.connect());
  const times: number[] = [];
  for (let round = 0; round < 6; round += 1) {
    const start = performance.now();
    const { sessions } = await client.request(SessionList, {});
    if (round > 0) times.push(performance.now() - start);
    expect(sessions.length).toBeGreaterThanOrEqual(LISTED);
  }
  client.close();
  await kernel.close();
  const values = new Map([["cookie", times]]);
  const what = `listing ${LISTED} sessions, warm, ms`;
  const { ours, limit } = report.add({ row: "S", what, digits: 0, values, bar: 300 });
  expect.soft(ours).toBeLessThanOrEqual(limit ?? 0);
});

/** Sessions that each read a file a turn, all started before the first has ended. */
async function runAll(client: CookieClient, count: number, name: string): Promise<void> {
  await Promise.all(
    Array.from({ length: count }, async (_, index) => {
      // A herd that starts in one moment would only measure its own queue.
      await setTimeout((index / count) * THINK_MS);
      const { session } = await client.request(SessionCreate, { selection });
      const { session_id } = session;
      await client.request(SessionSetPermissionMode, { session_id, mode: "yolo" });
      const watch = new SessionWatch(client, session_id, { outputs: false });
      const { run_id } = await client.request(RunStart, {
        session_id,
        client_run_id: `${name}-${index}` as ClientKey,
        selection,
        input: `${name} ${index}: ${promptFor("reads", TURNS)}`,
      });
      expect((await watch.end(run_id)).type).toBe("run_completed");
    }),
  );
}

/** Between the end of an answer and the head of the next request of the same session. */
function overheads(served: Awaited<ReturnType<ModelProcess["takeServed"]>>): number[] {
  const lastEndUs = new Map<string, number>();
  const found: number[] = [];
  for (const { said, arrivedAtUs, endedAtUs } of served.sort(
    (a, b) => a.arrivedAtUs - b.arrivedAtUs,
  )) {
    const before = lastEndUs.get(said);
    if (before !== undefined) found.push((arrivedAtUs - before) / 1000);
    lastEndUs.set(said, endedAtUs);
  }
  return found;
}

function heapAfterCollection(): number {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  collect();
  collect();
  return process.memoryUsage().heapUsed;
}

/** Copies of a session under ids of their own. */
async function multiply(directory: string, count: number): Promise<void> {
  const id = directory.slice(directory.lastIndexOf("/") + 1);
  const files = await Promise.all(
    ["events.jsonl", "metadata"].map(async (name) => {
      return { name, text: await readFile(join(directory, name), "utf8") };
    }),
  );
  for (let copy = 0; copy < count; copy += 1) {
    const copied = createId<SessionId>();
    const target = join(dirname(directory), copied);
    await mkdir(target);
    for (const { name, text } of files) {
      await writeFile(join(target, name), text.replaceAll(id, copied));
    }
  }
}
