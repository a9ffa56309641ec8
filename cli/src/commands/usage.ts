import {
  AgentId,
  Day,
  ModelKey,
  type ParamsInput,
  type ResultOf,
  UsageGlobal,
} from "@cookie-agent/sdk/protocol";
import { integer, string } from "@oclif/core/flags";
import { attachFlags, withClient } from "../attach.ts";
import { defineCommand } from "../command.ts";
import { dataDirFlag } from "../data-dir-flag.ts";
import { usageError } from "../exit-code.ts";
import { printable } from "../printable.ts";
import { requireSessionId } from "../session-id.ts";
import { print, printError, printJson } from "../standard-streams.ts";
import { switchFlag } from "../switch-flag.ts";
import { lookOf } from "../usage/terminal-look.ts";
import { renderUsageChart } from "../usage/usage-chart.ts";
import { renderUsageTable } from "../usage/usage-table.ts";

const DEFAULT_DAYS = 30;
const DAY_MS = 86_400_000;

export const usage = defineCommand({
  summary: "Show tokens and cost by day and model, over all projects.",
  description: `Counts every request that was answered, those of internal agents and of reverted parts of a conversation too. Days are those of this machine's time zone; without a flag the last ${DEFAULT_DAYS} of them.

Cost is estimated when a request is made, from the prices of that moment. It is "unknown" as soon as one request has no known price; [pricing] in the configuration states prices.`,
  examples: [
    "<%= config.bin %> usage",
    "<%= config.bin %> usage --days 7 --here",
    "<%= config.bin %> usage --since 2026-01-01 --model custom.anthropic/claude-sonnet-4-5 --json",
  ],
  args: {},
  flags: {
    days: integer({ description: "this many days, today included", min: 1, max: 36_500 }),
    since: string({ description: "from this day on, as YYYY-MM-DD" }),
    here: switchFlag("only the sessions of this directory"),
    session: string({ description: "only this session and its subagents, whatever its age" }),
    agent: string({ description: "only this agent" }),
    model: string({ description: "only this model, as provider/model" }),
    ...attachFlags,
    "data-dir": dataDirFlag,
  },
  async run({ flags }) {
    const query = queryOf(flags);
    const report = await withClient(flags, (client) => client.request(UsageGlobal, query));
    for (const diagnostic of report.diagnostics) printError(diagnostic);
    if (flags.json) {
      const { time_zone, since_day = null } = query;
      printJson({ time_zone, since_day, ...report });
    } else {
      print(describe(report));
    }
    return undefined;
  },
});

interface UsageFlags {
  readonly days: number | undefined;
  readonly since: string | undefined;
  readonly here: boolean;
  readonly session: string | undefined;
  readonly agent: string | undefined;
  readonly model: string | undefined;
}

function queryOf(flags: UsageFlags): ParamsInput<typeof UsageGlobal> {
  if (flags.days !== undefined && flags.since !== undefined) {
    throw usageError("--days and --since exclude each other");
  }
  const since = sinceDay(flags);
  return {
    everything: !flags.here,
    time_zone: new Intl.DateTimeFormat().resolvedOptions().timeZone,
    ...(since !== null && { since_day: since }),
    ...(flags.session !== undefined && {
      session_id: requireSessionId(flags.session, "usage --session"),
    }),
    ...(flags.agent !== undefined && { agent_id: requireValid(AgentId, flags.agent, "--agent") }),
    ...(flags.model !== undefined && {
      model: requireValid(ModelKey, flags.model, "--model", "; write it as provider/model"),
    }),
  };
}

/** Null: every day counts. */
function sinceDay({ days, since, session }: UsageFlags): string | null {
  if (since !== undefined) {
    const day = requireValid(Day, since, "--since", "; write it as YYYY-MM-DD");
    if (!isDay(day)) throw usageError(`--since: there is no day ${day}`);
    return day;
  }
  if (days === undefined && session !== undefined) return null;
  const today = new Date();
  const first = Date.UTC(today.getFullYear(), today.getMonth(), today.getDate());
  return new Date(first - ((days ?? DEFAULT_DAYS) - 1) * DAY_MS).toISOString().slice(0, 10);
}

function isDay(day: string): boolean {
  const at = Date.parse(day);
  return !Number.isNaN(at) && new Date(at).toISOString().startsWith(day);
}

function requireValid<T>(
  schema: { safeParse(text: unknown): { success: true; data: T } | { success: false } },
  text: string,
  flag: string,
  hint = "",
): T {
  const parsed = schema.safeParse(text);
  if (parsed.success) return parsed.data;
  throw usageError(`${flag}: "${text}" cannot be one${hint}`);
}

function describe(report: ResultOf<typeof UsageGlobal>): string {
  if (report.usage.request_count === 0) return "nothing was used";
  const unpriced = Object.entries(report.usage.by_model)
    .filter(([, totals]) => totals.estimated_cost_usd === null)
    .map(([model]) => printable(model));
  const chart = renderUsageChart(report, lookOf(process.stdout, process.env));
  return [
    renderUsageTable(report),
    ...(chart === "" ? [] : ["", chart]),
    ...(unpriced.length === 0
      ? []
      : ["", `the price of some requests is not known: ${unpriced.join(", ")}`]),
  ].join("\n");
}
