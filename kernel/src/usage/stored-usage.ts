import { AgentId, Count, ModelKey } from "@cookie-agent/sdk/protocol";
import * as z from "zod";
import type { UsageCell, UsageCells } from "./usage-cells.ts";

/** More cells, or names, are not kept: whoever needs them folds the log. */
const MAX_CELLS = 2048;
const MAX_NAMES = 256;

/**
 * The usage of a session as its metadata keeps it. It holds for a log of exactly that length: what was written since,
 * by a run that goes on or one that was killed, shows in the length (S 3.3).
 */
export const StoredUsage = z.object({
  version: z.literal(1),
  log_bytes: Count,
  models: z.array(ModelKey).max(MAX_NAMES),
  agents: z.array(AgentId).max(MAX_NAMES),
  /**
   * One line each: quarter of an hour since 1970, place in `agents`, in `models`, requests, tokens (input, output,
   * reasoning, cache read, cache write), 1 when every request reported its cache, cost in pico-dollars or `-`.
   */
  cells: z.array(z.string().regex(/^(?:\d{1,16} ){9}[01] (?:\d{1,20}|-)$/)).max(MAX_CELLS),
});
export type StoredUsage = z.infer<typeof StoredUsage>;

/** Undefined when it is too much for a cache. */
export function encodeUsage(cells: UsageCells, logBytes: number): StoredUsage | undefined {
  if (cells.size > MAX_CELLS) return undefined;
  const models = new Names();
  const agents = new Names();
  const lines = [...cells].map((cell) =>
    [
      cell.quarter,
      agents.place(cell.agent),
      models.place(cell.model),
      cell.requests,
      cell.input,
      cell.output,
      cell.reasoning,
      cell.cacheRead,
      cell.cacheWrite,
      cell.cacheKnown ? 1 : 0,
      cell.cost ?? "-",
    ].join(" "),
  );
  if (models.list.length > MAX_NAMES || agents.list.length > MAX_NAMES) return undefined;
  return {
    version: 1,
    log_bytes: logBytes,
    models: models.list,
    agents: agents.list,
    cells: lines,
  };
}

/** Undefined when it contradicts itself. */
export function decodeUsage(stored: StoredUsage): UsageCell[] | undefined {
  const cells: UsageCell[] = [];
  for (const line of stored.cells) {
    const parts = line.split(" ");
    const cost = parts.pop();
    const [quarter, agentAt, modelAt, requests, input, output, reasoning, cacheRead, cacheWrite] =
      parts.map(Number) as [number, number, number, ...number[]];
    const agent = stored.agents[agentAt];
    const model = stored.models[modelAt];
    if (agent === undefined || model === undefined) return undefined;
    cells.push({
      quarter,
      agent,
      model,
      requests: requests ?? 0,
      input: input ?? 0,
      output: output ?? 0,
      reasoning: reasoning ?? 0,
      cacheRead: cacheRead ?? 0,
      cacheWrite: cacheWrite ?? 0,
      cacheKnown: parts[9] === "1",
      cost: cost === undefined || cost === "-" ? null : BigInt(cost),
    });
  }
  return cells;
}

class Names {
  readonly list: string[] = [];
  readonly #places = new Map<string, number>();

  place(name: string): number {
    const known = this.#places.get(name);
    if (known !== undefined) return known;
    this.#places.set(name, this.list.length);
    return this.list.push(name) - 1;
  }
}
