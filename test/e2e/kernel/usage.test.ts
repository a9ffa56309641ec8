import { readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import {
  AgentUsage,
  type ParamsInput,
  SessionFork,
  type SessionId,
  SessionList,
  SessionResume,
  SessionRevert,
  SessionTreeUsage,
  SessionUsage,
  UsageGlobal,
} from "@cookie-agent/sdk/protocol";
import { describe, expect, test } from "vitest";
import { addChildSession } from "../../support/child-session.ts";
import { providerToml } from "../../support/model-server.ts";
import { openTestKernel, type TestKernel } from "../../support/open-test-kernel.ts";
import { findLogs, payloadsOf, readLog } from "../../support/session-log.ts";

const PRICES = `
[pricing.models."custom.test/scripted"]
input_per_million_usd = "2"
output_per_million_usd = "10"
cache_read_per_million_usd = "0.5"
`;
const turn = (input: number, output: number, cacheRead = 0) => ({
  text: "ok",
  usage: { input, output, cacheRead },
});
const MODEL = "custom.test/scripted";
const CHILD = "01a22c7f-aff6-7000-aae4-2b4d70f8089d" as SessionId;

const globally = (kernel: TestKernel, query: ParamsInput<typeof UsageGlobal> = {}) =>
  kernel.client.request(UsageGlobal, query);

async function onlyLog(kernel: Pick<TestKernel, "project">): Promise<string> {
  const [log, ...others] = await findLogs(kernel.project);
  if (log === undefined || others.length > 0) throw new Error("expected one log");
  return log;
}

/** A kernel that made one session of two requests and is closed; what they cost is known. */
async function closedKernel(config = PRICES) {
  const kernel = await openTestKernel({
    wire: "openai-responses",
    answers: [turn(1000, 100, 400), turn(2000, 50)],
    config,
  });
  const { sessionId } = await kernel.run("one");
  await kernel.run("two", { session: sessionId });
  await kernel.close();
  return { kernel, sessionId, log: await onlyLog(kernel) };
}

/** 600 × 2 + 400 × 0.5 + 100 × 10, and 2000 × 2 + 50 × 10, each in millionths of a dollar. */
const COST = 0.0024 + 0.0045;
const TOTALS = {
  input_tokens: 3000,
  output_tokens: 150,
  reasoning_tokens: 0,
  cache_read_tokens: 400,
  cache_write_tokens: 0,
  request_count: 2,
  cache_hit_rate: 400 / 3000,
  estimated_cost_usd: COST,
};

describe("the usage of a session", () => {
  test("is the sum of its records, while it is open and after a restart", async () => {
    const { kernel, sessionId } = await closedKernel();
    const reopened = await openTestKernel({ on: kernel });
    const { usage } = await reopened.client.request(SessionUsage, { session_id: sessionId });
    expect(usage).toEqual({ ...TOTALS, by_model: { [MODEL]: TOTALS } });
    reopened.server.enqueue(turn(1, 1));
    await reopened.run("three", { session: sessionId });
    const open = await reopened.client.request(SessionUsage, { session_id: sessionId });
    expect(open.usage).toMatchObject({ input_tokens: 3001, request_count: 3 });
  });

  test("[S-233] keeps the price of its time, whatever is configured later", async () => {
    const { kernel, sessionId } = await closedKernel();
    const dearer = `${providerToml(kernel.server, { wire: "openai-responses" })}
[pricing.models."${MODEL}"]
input_per_million_usd = "100"
output_per_million_usd = "100"
`;
    await kernel.project.writeState("config.toml", dearer);
    const reopened = await openTestKernel({ on: kernel });
    const { usage } = await reopened.client.request(SessionUsage, { session_id: sessionId });
    expect(usage.estimated_cost_usd).toBeCloseTo(COST, 12);
    reopened.server.enqueue(turn(1_000_000, 0));
    await reopened.run("three", { session: sessionId });
    const after = await reopened.client.request(SessionUsage, { session_id: sessionId });
    expect(after.usage.estimated_cost_usd).toBeCloseTo(COST + 100, 9);
  });

  test("[S-235] has no cost once a request of it has none, and no partial sum", async () => {
    const { kernel, sessionId } = await closedKernel("");
    const priced = `${providerToml(kernel.server, { wire: "openai-responses" })}${PRICES}`;
    await kernel.project.writeState("config.toml", priced);
    const reopened = await openTestKernel({ on: kernel });
    reopened.server.enqueue(turn(1000, 10));
    await reopened.run("three", { session: sessionId });
    const { usage } = await reopened.client.request(SessionUsage, { session_id: sessionId });
    expect(usage).toMatchObject({ request_count: 3, estimated_cost_usd: null });
    expect((await globally(reopened)).usage.estimated_cost_usd).toBeNull();
    const costs = payloadsOf(await readLog(await onlyLog(reopened)), "model_usage_recorded");
    expect(costs.map(({ estimated_cost_pico_usd: cost }) => cost)).toEqual([
      null,
      null,
      2_100_000_000,
    ]);
  });

  test("of one that has used nothing is zero, without cost and hit rate", async () => {
    const kernel = await openTestKernel();
    const session_id = await kernel.createSession();
    const { usage } = await kernel.client.request(SessionUsage, { session_id });
    expect(usage).toMatchObject({
      request_count: 0,
      estimated_cost_usd: null,
      cache_hit_rate: null,
      by_model: {},
    });
    const tree = await kernel.client.request(SessionTreeUsage, { session_id });
    expect(tree).toMatchObject({ session_count: 1, usage: { request_count: 0 } });
  });
});

describe("the usage of a tree", () => {
  test("holds every descendant, on disk or open", async () => {
    const { kernel, sessionId, log } = await closedKernel();
    await addChildSession(log, CHILD);
    const reopened = await openTestKernel({ on: kernel });
    reopened.server.enqueue(turn(1, 1));
    await reopened.run("three", { session: sessionId });
    const ask = (session_id: SessionId) =>
      reopened.client.request(SessionTreeUsage, { session_id });
    expect(await ask(sessionId)).toMatchObject({
      session_count: 2,
      usage: { request_count: 5, input_tokens: 6001 },
    });
    expect(await ask(CHILD)).toMatchObject({ session_count: 1, usage: { request_count: 2 } });
    expect(await globally(reopened)).toMatchObject({
      session_count: 2,
      usage: { request_count: 5 },
    });
    expect(await globally(reopened, { session_id: CHILD })).toMatchObject({ session_count: 1 });
    expect(await globally(reopened, { session_id: sessionId })).toMatchObject({ session_count: 2 });
  });

  test("[S-237] of a session that is not there, and of one with a parent of another tree, are errors", async () => {
    const { kernel, sessionId, log } = await closedKernel();
    await addChildSession(log, CHILD, { parent_session_id: CHILD.replace("01a2", "01a3") });
    const reopened = await openTestKernel({ on: kernel });
    const ask = (session_id: SessionId) =>
      reopened.client.request(SessionTreeUsage, { session_id });
    await expect(ask(CHILD.replace("01a2", "01a3") as SessionId)).rejects.toMatchObject({
      code: "tree_session_not_found",
    });
    await expect(ask(sessionId)).rejects.toMatchObject({
      code: "corrupt_delegation",
      data: { session_id: CHILD },
    });
  });
});

describe("the usage of everything", () => {
  test("comes from the caches: no log is opened", async () => {
    const { kernel, log } = await closedKernel();
    const { length } = await readFile(log);
    await writeFile(log, "x".repeat(length));
    const reopened = await openTestKernel({ on: kernel });
    expect(await globally(reopened)).toEqual({
      usage: { ...TOTALS, by_model: { [MODEL]: TOTALS } },
      session_count: 1,
      diagnostics: [],
    });
    const agent = await reopened.client.request(AgentUsage, { agent_id: "primary" });
    expect(agent.usage).toMatchObject({ request_count: 2 });
    const other = await reopened.client.request(AgentUsage, { agent_id: "title" });
    expect(other.usage).toMatchObject({ request_count: 0, estimated_cost_usd: null });
  });

  test("[S-071] lists do not carry it", async () => {
    const { kernel } = await closedKernel();
    const reopened = await openTestKernel({ on: kernel });
    const { sessions } = await reopened.client.request(SessionList, {});
    expect(sessions.map((session) => "usage" in session)).toEqual([false]);
  });

  test.for<[string, (metadata: Record<string, unknown>) => string]>([
    ["of a version without usage", ({ usage: _, ...rest }) => JSON.stringify(rest)],
    ["of a later version", (meta) => JSON.stringify({ ...meta, usage: { version: 2 } })],
    ["with a damaged cell", (meta) => JSON.stringify(meta).replace(/("cells":\[")/, "$1x")],
    ["that is empty", () => ""],
    ["that names another session", (meta) => JSON.stringify({ ...meta, session_id: CHILD })],
  ])("does not depend on metadata %s", async ([, damage]) => {
    const { kernel, log } = await closedKernel();
    const file = join(dirname(log), "metadata");
    const metadata = JSON.parse(await readFile(file, "utf8")) as Record<string, unknown>;
    await writeFile(file, damage(metadata));
    const reopened = await openTestKernel({ on: kernel });
    expect((await globally(reopened)).usage).toMatchObject(TOTALS);
  });

  test("counts what was recorded after the metadata was written, as by a process that was killed", async () => {
    const kernel = await openTestKernel({ answers: [turn(1, 1), turn(2, 2)] });
    const { sessionId } = await kernel.run("one");
    await kernel.close();
    const file = join(dirname(await onlyLog(kernel)), "metadata");
    const early = await readFile(file, "utf8");
    const second = await openTestKernel({ on: kernel });
    await second.run("two", { session: sessionId });
    await second.close();
    await writeFile(file, early);
    const third = await openTestKernel({ on: kernel });
    expect((await globally(third)).usage).toMatchObject({ request_count: 2, input_tokens: 3 });
  });

  test("holds a session whose run goes on, here and for another process", async () => {
    let release = (): void => undefined;
    const until = new Promise<void>((resolve) => {
      release = resolve;
    });
    const kernel = await openTestKernel({
      answers: [
        { ...turn(5, 1), calls: [{ name: "bash", arguments: { command: "true" } }] },
        { ...turn(1, 1), until },
      ],
    });
    const session = await kernel.createSession({ mode: "yolo" });
    const runId = await kernel.start(session, "go");
    const watch = kernel.watch(session);
    await watch.event("tool_call_terminated");
    await watch.event("model_attempt_started", ({ attempt_ordinal }) => attempt_ordinal === 2);
    const other = await openTestKernel({ on: kernel });
    for (const asked of [kernel, other]) {
      expect((await globally(asked)).usage).toMatchObject({ request_count: 1, input_tokens: 5 });
    }
    release();
    await watch.end(runId);
    expect((await globally(kernel)).usage.request_count).toBe(2);
  });

  test("leaves out what it cannot read, and says so", async () => {
    const { kernel, sessionId, log } = await closedKernel();
    await writeFile(log, "nonsense\n");
    const reopened = await openTestKernel({ on: kernel });
    const { usage, diagnostics } = await globally(reopened);
    expect(usage.request_count).toBe(0);
    expect(diagnostics).toEqual([expect.stringContaining(sessionId)]);
  });

  test("holds other directories only when it is asked for everything", async () => {
    const { kernel } = await closedKernel();
    const project = { ...kernel.project, cwd: join(kernel.project.home, "elsewhere") };
    await kernel.project.write("../home/elsewhere/notes.txt", "");
    const elsewhere = await openTestKernel({ on: { project, server: kernel.server } });
    elsewhere.server.enqueue(turn(7, 1));
    await elsewhere.run("here");
    expect((await globally(elsewhere)).usage.input_tokens).toBe(7);
    expect(await globally(elsewhere, { everything: true })).toMatchObject({
      usage: { input_tokens: 3007 },
      session_count: 2,
    });
    const unknown = join(
      kernel.project.stateDir,
      "sessions",
      "0123456789abcdef-odd",
      "layout.json",
    );
    await kernel.project.writeState("sessions/0123456789abcdef-odd/layout.json", '{"version":9}');
    const { diagnostics, usage } = await globally(elsewhere, { everything: true });
    expect(usage.input_tokens).toBe(3007);
    expect(diagnostics).toEqual([expect.stringContaining(dirname(unknown))]);
  });
});

describe("reverts and forks", () => {
  const inputs = async (kernel: TestKernel, session_id: SessionId) => {
    const session = await kernel.client.request(SessionUsage, { session_id });
    const tree = await kernel.client.request(SessionTreeUsage, { session_id });
    expect(tree.usage).toEqual(session.usage);
    return session.usage.input_tokens;
  };
  /** The event that ended the first run. */
  const firstEnd = async (log: string) => {
    const events = await readLog(log);
    return events.find(({ payload }) => payload.type === "run_completed")?.seq ?? 0;
  };

  test("a revert takes back what the session used, and not what was paid", async () => {
    const { kernel, sessionId, log } = await closedKernel();
    const reopened = await openTestKernel({ on: kernel });
    await reopened.client.request(SessionResume, { session_id: sessionId });
    const through_seq = await firstEnd(log);
    await reopened.client.request(SessionRevert, { session_id: sessionId, through_seq });
    reopened.server.enqueue(turn(5, 1));
    await reopened.run("another two", { session: sessionId });
    expect(await inputs(reopened, sessionId)).toBe(1005);
    expect((await globally(reopened)).usage.input_tokens).toBe(3005);
    await reopened.close();
    const after = await openTestKernel({ on: kernel });
    expect(await inputs(after, sessionId)).toBe(1005);
    expect((await globally(after)).usage.input_tokens).toBe(3005);
    await writeFile(join(dirname(log), "metadata"), "");
    expect((await globally(after)).usage.input_tokens).toBe(3005);
  });

  test("a fork starts with what it copied, which is paid only once", async () => {
    const { kernel, sessionId, log } = await closedKernel();
    const reopened = await openTestKernel({ on: kernel });
    const through_seq = await firstEnd(log);
    const fork = async (of: SessionId, seq: number) => {
      const forked = await reopened.client.request(SessionFork, {
        session_id: of,
        through_seq: seq,
      });
      return forked.session_id;
    };
    const first = await fork(sessionId, through_seq);
    expect(await inputs(reopened, first)).toBe(1000);
    expect(await globally(reopened)).toMatchObject({
      usage: { input_tokens: 3000 },
      session_count: 1,
    });
    reopened.server.enqueue(turn(7, 1), turn(11, 1));
    await reopened.run("on the fork", { session: first });
    const [forkLog = ""] = (await findLogs(kernel.project)).filter((path) => path.includes(first));
    const second = await fork(first, (await readLog(forkLog)).at(-1)?.seq ?? 0);
    await reopened.run("on the fork of the fork", { session: second });
    expect(await inputs(reopened, second)).toBe(1018);
    const everything = { usage: { input_tokens: 3018, request_count: 4 }, session_count: 3 };
    expect(await globally(reopened)).toMatchObject(everything);
    await reopened.close();
    const after = await openTestKernel({ on: kernel });
    expect(await globally(after)).toMatchObject(everything);
    for (const path of await findLogs(kernel.project)) {
      await writeFile(join(dirname(path), "metadata"), "");
    }
    expect(await globally(after)).toMatchObject(everything);
  });
});

describe("usage by day", () => {
  /** The same session, its second request half an hour before midnight UTC. */
  async function nightKernel() {
    const { kernel, log } = await closedKernel();
    const text = await readFile(log, "utf8");
    let records = 0;
    const lines = text.split("\n").map((line) => {
      if (!line.includes('"model_usage_recorded"')) return line;
      records += 1;
      const time = records === 1 ? "2026-03-01T10:00:00.000Z" : "2026-03-01T23:30:00.000Z";
      return JSON.stringify({ ...(JSON.parse(line) as object), timestamp: time });
    });
    await writeFile(log, lines.join("\n"));
    // Of the same length as before, so it would be believed.
    await writeFile(join(dirname(log), "metadata"), "");
    return openTestKernel({ on: kernel });
  }

  test.for([
    ["UTC", [["2026-03-01", 3000]]],
    [
      "Asia/Kathmandu",
      [
        ["2026-03-01", 1000],
        ["2026-03-02", 2000],
      ],
    ],
    ["Pacific/Kiritimati", [["2026-03-02", 3000]]],
  ] as const)("goes by the days of %s", async ([time_zone, expected]) => {
    const kernel = await nightKernel();
    const { days = [] } = await globally(kernel, { time_zone });
    expect(days.map(({ day, usage }) => [day, usage.input_tokens])).toEqual(expected);
  });

  test("begins with the day that is asked for", async () => {
    const kernel = await nightKernel();
    const { usage, days } = await globally(kernel, {
      time_zone: "Asia/Kathmandu",
      since_day: "2026-03-02",
    });
    expect(usage.input_tokens).toBe(2000);
    expect(days?.map(({ day }) => day)).toEqual(["2026-03-02"]);
  });

  test("goes by agent and model", async () => {
    const kernel = await nightKernel();
    expect((await globally(kernel, { agent_id: "other" })).usage.request_count).toBe(0);
    expect((await globally(kernel, { model: "custom.test/other" })).session_count).toBe(0);
    expect((await globally(kernel, { model: MODEL, agent_id: "primary" })).session_count).toBe(1);
  });

  test("needs a time zone that there is", async () => {
    const kernel = await openTestKernel();
    const refused = { code: "invalid_params" };
    await expect(globally(kernel, { time_zone: "Mars/Base" })).rejects.toMatchObject(refused);
    await expect(globally(kernel, { since_day: "2026-03-02" })).rejects.toMatchObject(refused);
    await expect(globally(kernel, { session_id: CHILD })).rejects.toMatchObject({
      code: "session_missing",
    });
  });
});
