import {
  CookieError,
  type ParamsOf,
  type ResultOf,
  type UsageGlobal,
  UsageSum,
} from "@cookie-agent/sdk/protocol";
import type { ArchivedSession, UsageArchive } from "../store/usage-archive.ts";
import { decodeUsage } from "../usage/stored-usage.ts";
import { QUARTER_MS, type UsageCell } from "../usage/usage-cells.ts";
import { foldLedger } from "./fold-ledger.ts";
import { originOf, subtreeOf } from "./session-edges.ts";
import type { SessionRegistry } from "./session-registry.ts";

export interface UsageSources {
  readonly sessions: Pick<SessionRegistry, "spent">;
  readonly archive: UsageArchive;
}

type Query = ParamsOf<typeof UsageGlobal>;

/**
 * Sums what stored sessions have really used, from their caches; a log is read only where the cache is missing or
 * older than the log (S 13). Memory does not grow with the number of sessions.
 */
export async function reportUsage(
  { sessions, archive }: UsageSources,
  query: Query,
): Promise<ResultOf<typeof UsageGlobal>> {
  const dayOf = query.time_zone === undefined ? null : daysOf(query.time_zone);
  if (query.since_day !== undefined && dayOf === null) {
    throw new CookieError("invalid_params", "since_day needs a time_zone: days differ by zone");
  }
  const total = new UsageSum();
  const days = new Map<string, UsageSum>();
  const diagnostics: string[] = [];
  let sessionCount = 0;

  const count = (cells: Iterable<UsageCell>): void => {
    let counted = false;
    for (const cell of cells) {
      if (query.agent_id !== undefined && cell.agent !== query.agent_id) continue;
      if (query.model !== undefined && cell.model !== query.model) continue;
      const day = dayOf?.(cell.quarter);
      if (query.since_day !== undefined && (day ?? "") < query.since_day) continue;
      counted = true;
      total.merge(cell.model, cell);
      if (day === undefined) continue;
      let ofDay = days.get(day);
      if (ofDay === undefined) {
        ofDay = new UsageSum();
        days.set(day, ofDay);
      }
      ofDay.merge(cell.model, cell);
    }
    if (counted) sessionCount += 1;
  };
  const note = (text: string): void => void diagnostics.push(text);

  let found = query.session_id === undefined;
  const scope = query.everything === true ? "everything" : "directory";
  for await (const tree of archive.trees(scope, note)) {
    let members = tree;
    if (query.session_id !== undefined) {
      if (!tree.some(({ sessionId }) => sessionId === query.session_id)) continue;
      found = true;
      members = await subtreeOf(tree, query.session_id, originOf);
    }
    for (const session of members) {
      try {
        count(sessions.spent(session.sessionId) ?? (await spentOf(session)));
      } catch (error) {
        note(error instanceof Error ? error.message : String(error));
      }
    }
  }
  if (!found) {
    throw new CookieError("session_missing", `there is no session ${query.session_id}`);
  }
  return {
    usage: total.rollup(),
    session_count: sessionCount,
    ...(dayOf !== null && {
      days: [...days]
        .sort(([a], [b]) => (a < b ? -1 : 1))
        .map(([day, sum]) => ({ day, usage: sum.rollup() })),
    }),
    diagnostics,
  };
}

async function spentOf(session: ArchivedSession): Promise<Iterable<UsageCell>> {
  const cached = session.usage === null ? undefined : decodeUsage(session.usage);
  return cached ?? (await foldLedger(session)).cells;
}

/** Which day a quarter of an hour belongs to. */
function daysOf(timeZone: string): (quarter: number) => string {
  let format: Intl.DateTimeFormat;
  try {
    format = new Intl.DateTimeFormat("en-CA", {
      timeZone,
      year: "numeric",
      month: "2-digit",
      day: "2-digit",
    });
  } catch {
    throw new CookieError("invalid_params", `there is no time zone ${JSON.stringify(timeZone)}`);
  }
  const known = new Map<number, string>();
  return (quarter) => {
    let day = known.get(quarter);
    if (day === undefined) {
      day = format.format(quarter * QUARTER_MS);
      known.set(quarter, day);
    }
    return day;
  };
}
