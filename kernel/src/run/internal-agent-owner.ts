import type { InternalAgentOwner } from "../internal-agent/run-internal-agent.ts";
import type { RunContext } from "./run-context.ts";

/**
 * The run as whoever asks an internal agent for it: its models begin where the run stands in its chain (C-095), and
 * what its tree may use is theirs to use (S-261).
 */
export function internalAgentOwner({ run, position, log, budget }: RunContext): InternalAgentOwner {
  return {
    runId: run.runId,
    log: log.beside,
    sources: run.internalAgents,
    parentModels: run.chain.slice(position.index),
    retry: run.retry,
    forbids: () => budget?.check(log.held)?.reason ?? null,
  };
}
