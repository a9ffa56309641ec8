import {
  CookieError,
  isCookieError,
  type ModelSelection,
  type RunSelection,
} from "@cookie-agent/sdk/protocol";
import { blockedError } from "../plugin/blocked-error.ts";
import type { HookChain, HookOutcome } from "../plugin/hook-chain.ts";
import type { AdmittedRun } from "../run/admit-run.ts";
import { beforeInput, beforeSelect, beforeStart } from "../run/before-run.ts";
import { recallSelection } from "../run/resolve-agent.ts";
import type { SessionParts } from "./session-parts.ts";

/** What hooks of a session need of it. */
export type HookParts = Pick<SessionParts, "sessionId" | "rootSessionId" | "services" | "state"> & {
  /** Aborts when the session is being closed: nothing else cancels an admission. */
  readonly closing: AbortSignal;
};

/** Shows what a person says to a root session; rejects with `input_handled`, `operation_blocked` or `shutting_down`. */
export async function passInput(parts: HookParts, text: string): Promise<string> {
  const { hooks } = parts.services.stages;
  if (hooks === undefined) return text;
  const asked = beforeInput(hooks, siteOf(parts), text, parts.closing);
  return passedOr(await unlessClosing(parts, asked), "input_handled");
}

/** Whether somebody looks at a run before it is recorded. */
export function asksAboutAdmission({ services }: HookParts): boolean {
  return services.stages.hooks?.has("model_before_select", "agent_before_start") === true;
}

/** Delegated sessions are told things by agents, not by people. */
export function asksAboutInput({ services, state }: HookParts): boolean {
  return services.stages.hooks?.has("user_before_input") === true && state.origin?.type === "root";
}

/**
 * Shows a run before anything of it is recorded; yields it as the plugins leave it. Rejects with
 * `model_selection_blocked`, `operation_blocked` or `shutting_down`; the session then is as it was.
 */
export async function passAdmission(
  parts: HookParts,
  run: AdmittedRun,
  input: string,
): Promise<AdmittedRun> {
  const { hooks } = parts.services.stages;
  if (hooks?.has("model_before_select") === true) await passSelection(parts, hooks, run);
  if (hooks?.has("agent_before_start") !== true) return run;
  const asked = beforeStart(hooks, siteOf(parts), { run, input }, parts.closing);
  return passedOr(await unlessClosing(parts, asked), "operation_blocked");
}

async function passSelection(parts: HookParts, hooks: HookChain, run: AdmittedRun): Promise<void> {
  const { facts } = parts.services;
  const { lastAgent, lastModel } = parts.state;
  const from = lastAgent === null ? null : lastModel;
  const to = run.chain[0]?.selection ?? run.selection.model;
  if (from !== null && isSame(from, to)) return;
  const configured: RunSelection | null = recallSelection(facts, null);
  const isConfigured = from === null && configured !== null && isSame(configured.model, to);
  const source = isConfigured ? "config" : "user";
  const asked = beforeSelect(hooks, siteOf(parts), { from, to, source }, parts.closing);
  passedOr(await unlessClosing(parts, asked), "model_selection_blocked");
}

function passedOr<S>(outcome: HookOutcome<S>, code: Parameters<typeof blockedError>[1]): S {
  if (outcome.kind === "passed") return outcome.state;
  throw blockedError(outcome, code);
}

/** The reason, when a plugin has seen to an input itself. */
export function handledReason(error: unknown): string | undefined {
  if (!isCookieError(error, "input_handled")) return undefined;
  const { reason } = error.data;
  return typeof reason === "string" ? reason : error.message;
}

export function siteOf({ sessionId, rootSessionId, state }: HookParts) {
  return { sessionId, rootSessionId, runId: state.activeRun?.runId ?? null, toolCallId: null };
}

function isSame(one: ModelSelection, other: ModelSelection): boolean {
  return one.model === other.model && one.variant === other.variant;
}

/** Rejects with `shutting_down` when the session was closed meanwhile. */
export async function unlessClosing<T>({ closing }: HookParts, asked: Promise<T>): Promise<T> {
  try {
    return await asked;
  } catch (error) {
    if (!closing.aborted) throw error;
    throw new CookieError("shutting_down", "the session is being closed");
  }
}
