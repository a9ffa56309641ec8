import { execFileSync } from "node:child_process";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { SessionId, ToolCallId } from "@cookie-agent/sdk/protocol";
import { build } from "esbuild";
import { afterAll, beforeAll, expect, test } from "vitest";
import { encodeEvents, joinLines } from "../../kernel/dist/event/encode-event.js";
import type { EventDraft } from "../../kernel/dist/event/event-draft.js";
import { FIRST_LINE } from "../../kernel/dist/event/line-context.js";
import { createId } from "../../kernel/dist/support/create-id.js";
import { eventsOf, RunScript, sessionCreated, USAGE } from "../unit/kernel/event/event-fixtures.ts";
import { BenchReport } from "./support/bench-report.ts";
import { CALM_LIMIT_MS, RUNS } from "./support/drive-harnesses.ts";
import { waitForCalm } from "./support/process-tree.ts";

const TURNS_PER_RUN = 200;
const report = new BenchReport("session-log");
let root: string;
let program: string;

beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), "cookie-bench-log-"));
  program = join(root, "open-log.mjs");
  const entryPoints = [join(import.meta.dirname, "open-log.ts")];
  const banner = {
    js: "import{createRequire as __cr}from'node:module';const require=__cr(import.meta.url);",
  };
  await build({
    entryPoints,
    outfile: program,
    bundle: true,
    platform: "node",
    format: "esm",
    banner,
  });
});
afterAll(async () => {
  report.finish();
  await rm(root, { recursive: true, force: true });
});

test.for([
  [1200, undefined],
  [50_000, 2],
] as const)(
  "F: opening a session of %i events beside reading its lines",
  async ([count, times]) => {
    const log = await writeLog(count);
    const opened: Figures[] = [];
    const parsed: Figures[] = [];
    for (let run = 0; run <= RUNS; run += 1) {
      await waitForCalm(CALM_LIMIT_MS);
      const figures = { floor: measure(log, "parse"), ours: measure(log, "open") };
      expect([figures.ours.count, figures.floor.count]).toEqual([count, count]);
      if (run === 0) continue;
      parsed.push(figures.floor);
      opened.push(figures.ours);
    }
    const both = (member: "ms" | "peakMib") =>
      new Map([
        ["cookie", opened.map((each) => each[member])],
        ["floor", parsed.map((each) => each[member])],
      ]);
    const what = `open ${count} events`;
    const bar = times === undefined ? {} : { bar: { times, of: "floor" } };
    const { ours, limit } = report.add({
      row: "F",
      what: `${what}, ms`,
      digits: 1,
      values: both("ms"),
      ...bar,
    });
    report.add({ row: "F", what: `${what}, process, MiB`, digits: 0, values: both("peakMib") });
    if (limit !== undefined) expect.soft(ours).toBeLessThanOrEqual(limit);
  },
);

interface Figures {
  readonly count: number;
  readonly ms: number;
  readonly peakMib: number;
}

function measure(log: string, how: "open" | "parse"): Figures {
  const answer = execFileSync(process.execPath, [program, log, how], { encoding: "utf8" });
  return JSON.parse(answer) as Figures;
}

async function writeLog(count: number): Promise<string> {
  const sessionId = createId<SessionId>();
  const directory = join(root, sessionId);
  await mkdir(directory);
  const lines = encodeEvents(eventsOf(sessionId, draftsOf(count)), FIRST_LINE);
  await writeFile(join(directory, "events.jsonl"), joinLines(lines));
  return join(directory, "events.jsonl");
}

/** Runs of many turns, each of which calls one tool that answers with a small file. */
function draftsOf(count: number): EventDraft[] {
  const drafts = [sessionCreated()];
  for (let turn = 1, run = new RunScript(); drafts.length < count; turn += 1) {
    if (turn % TURNS_PER_RUN === 1) {
      if (turn > 1) drafts.push(run.completed());
      run = new RunScript();
      drafts.push(run.started(), run.input());
    }
    drafts.push(...turnOf(run, turn));
  }
  return drafts.slice(0, count);
}

function turnOf(run: RunScript, turn: number): EventDraft[] {
  const id = `call_${turn}`;
  const call = {
    type: "tool_call",
    id,
    provider_item_id: null,
    name: "read",
    raw_input: null,
  } as const;
  const owner = { ...run.owner, model_turn_seq: turn, content_index: 0, model_call_id: id };
  const shared = {
    tool_call_id: createId<ToolCallId>(),
    owner: { ...owner, provider_item_id: null },
  };
  const usage = { input_tokens: 1000 + turn, output_tokens: 50 };
  const output = `${"a line of a small file\n".repeat(40)}${turn}`;
  const result = { title: "Read a", output, metadata: { kind: "text" }, attachments: [] };
  return [
    run.attempt({ attempt_ordinal: turn }),
    run.turn({
      model_turn_seq: turn,
      turn: {
        content: [{ ...call, input: { path: `note-${turn}.txt` } }],
        finish_reason: "tool_calls",
        usage: { ...USAGE, ...usage },
      },
    }),
    run.usage(turn),
    run.callStarted(shared),
    run.callEnded({ ...shared, result: { ...result, display: null, retained_output: null } }),
  ];
}
