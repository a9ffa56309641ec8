import type { EventPayload } from "@cookie-agent/sdk/protocol";
import type { HistoryMessage } from "../model/bound-model.ts";
import { sha256Hex } from "../support/digest.ts";
import { safeLines } from "../support/safe-text.ts";
import { composeInstructions } from "./before-compact.ts";
import { summaryMessage } from "./checkpoint-messages.ts";
import type { CompactionScene } from "./compaction-scene.ts";
import { fixedBytes, triggerTokens } from "./context-limits.ts";
import type { History } from "./history.ts";
import { recentFrom, unansweredFrom } from "./keep-recent.ts";
import { byteLengthOf, sum } from "./message-size.ts";
import { openedPaths, rehydrateFiles } from "./rehydrate-files.ts";
import { summarize } from "./summarize-history.ts";

export interface CompactionRequest {
  /** `overflow`: the provider has just refused the conversation as too long, whatever the estimates say. */
  readonly kind: "automatic" | "overflow" | "manual";
  /** What the summary is to pay attention to. */
  readonly focus: string | null;
}

export type CompactionResult =
  | { readonly kind: "compacted" }
  /** There is nothing that a checkpoint could stand for. */
  | { readonly kind: "skipped" }
  /** By a plugin, with its reason, or because somebody stopped it. */
  | { readonly kind: "cancelled"; readonly reason: string }
  | { readonly kind: "failed"; readonly reason: string };

/** Where the messages are cut, as indices. */
interface Cut {
  /** What a summary stands for ends here; behind it is what nobody has answered. */
  readonly end: number;
  /** Of these the newest stay. */
  readonly recent: number;
}

/** A summary that costs less than this part of the conversation is not worth its request. */
const KEPT_SHARE = 2;
/** Where there is no trigger to come below. */
const USUAL_SHARE = 0.7;

const CUT_MARK = "\n\n[The summary was cut off here: its model had no room for more.]";

/**
 * Puts a summary in the place of the conversation so far (S 10.4): plugins may object, the internal agent writes it, a
 * checkpoint records it if it makes the next request smaller, and files that were read come back as far as there is
 * room. Every other end leaves the history as it is. It rejects only when the log cannot be written.
 */
export async function compactContext(
  scene: CompactionScene,
  request: CompactionRequest,
  signal: AbortSignal,
): Promise<CompactionResult> {
  await scene.log.flush();
  const { history, estimator } = scene;
  const fixed = fixedBytes(scene.run, history.contextDocuments);
  // Outside a run nobody waits for an answer any more.
  const askedFromSeq = scene.runId === null ? Number.POSITIVE_INFINITY : history.runFromSeq;
  const end = unansweredFrom(history.messages, history.facts, askedFromSeq);
  if (!history.facts.slice(0, end).some(({ seq }) => seq > 0)) return { kind: "skipped" };
  const before = estimator.project(fixed + history.byteLength);
  const limits = limitsOf(scene, request, before);

  const instructions = await composeInstructions(scene, request.focus, signal);
  if (instructions.kind !== "go") return instructions;
  const summary = await summarize(
    scene,
    { end, instruction: instructions.text, beforeTokens: before },
    signal,
  );
  if (summary.kind !== "written") {
    await scene.log.flush();
    return summary;
  }

  const text = summaryText(summary, scene.run.compaction.maxSummaryBytes);
  const cut = { end, recent: chooseRecent(scene, { fixed, end, text, before, limits }) };
  const after = estimator.tokensOf(fixed + bytesAfter(history, cut, text));
  if (after >= before) {
    await scene.log.flush();
    return { kind: "failed", reason: "a summary would not have made the conversation shorter" };
  }
  const messages = history.messages.slice(0, end);
  const kept = history.messages.slice(cut.recent);
  const cameBack = history.checkpoint?.rehydrated ?? [];
  await scene.log.append([
    {
      runId: scene.runId,
      payload: checkpointOf(scene, { cut, text, summary, before, after, limits }),
    },
  ]);
  estimator.compacted(fixed + history.byteLength);
  const opened = [...cameBack, ...openedPaths(messages, scene.run.toolSet)];
  await rehydrate(scene, { opened, kept, fixed, roomTokens: (limits.target - after) / 2 });
  return { kind: "compacted" };
}

/** One that was cut says so, lest what it does not come to passes for unimportant. */
function summaryText({ text, isCut }: { text: string; isCut: boolean }, maxBytes: number): string {
  if (!isCut || maxBytes <= CUT_MARK.length) return safeLines(text, maxBytes);
  return safeLines(text, maxBytes - CUT_MARK.length) + CUT_MARK;
}

interface Limits {
  readonly contextTokens: number | null;
  readonly trigger: number;
  /** What the conversation is to come below. */
  readonly target: number;
  /** Of the context as far as is known or must be assumed. */
  readonly assumedTokens: number;
}

function limitsOf(scene: CompactionScene, { kind }: CompactionRequest, before: number): Limits {
  const { run, chainIndex } = scene;
  const contextTokens = run.chain[chainIndex]?.contextTokens ?? null;
  const trigger = triggerTokens(run.compaction, contextTokens);
  // A refusal says more than any estimate or declared limit.
  const assumedTokens =
    kind === "overflow" ? Math.min(contextTokens ?? before, before) : (contextTokens ?? before);
  const usual = Math.floor(assumedTokens * USUAL_SHARE);
  const target = trigger > 0 ? Math.min(trigger, usual) : usual;
  return { contextTokens, trigger, target, assumedTokens };
}

/** The first of the recent messages that stay: as many as fit beside the summary, and at most half of all (S 10.1). */
function chooseRecent(
  { history, estimator, run }: CompactionScene,
  facts: {
    readonly fixed: number;
    readonly end: number;
    readonly text: string;
    readonly before: number;
    readonly limits: Limits;
  },
): number {
  const { fixed, end, text, limits } = facts;
  const covered = sum(history.facts.slice(0, end).map(({ byteLength }) => byteLength));
  const floor = fixed + byteLengthOf(summaryMessage(text)) + (history.byteLength - covered);
  const roomTokens = Math.min(
    run.compaction.keepRecentTokens,
    Math.floor(limits.assumedTokens / 4),
    limits.target - estimator.tokensOf(floor),
  );
  const roomBytes = Math.min(estimator.bytesOf(roomTokens), Math.floor(covered / KEPT_SHARE));
  return recentFrom(history.messages, history.facts, end, roomBytes);
}

function bytesAfter(history: History, { recent }: Cut, text: string): number {
  const kept = history.facts.slice(recent).map(({ byteLength }) => byteLength);
  return byteLengthOf(summaryMessage(text)) + sum(kept);
}

function checkpointOf(
  scene: CompactionScene,
  facts: {
    readonly cut: Cut;
    readonly text: string;
    readonly summary: Extract<Awaited<ReturnType<typeof summarize>>, { kind: "written" }>;
    readonly before: number;
    readonly after: number;
    readonly limits: Limits;
  },
): EventPayload {
  const { history, run } = scene;
  const { cut, text, summary, limits } = facts;
  const seqAt = (index: number) => history.facts[index]?.seq;
  const firstSeq = history.facts.find(({ seq }) => seq > 0)?.seq ?? 1;
  const unanswered = seqAt(cut.end);
  return {
    type: "context_checkpoint_committed",
    checkpoint: {
      type: "internal_summary",
      summary: text,
      byte_length: Buffer.byteLength(text),
      sha256: sha256Hex(text),
      invocation_id: summary.invocationId,
      internal_run_id: summary.internalRunId,
    },
    boundaries: {
      source_from_seq: firstSeq,
      source_through_seq: unanswered === undefined ? scene.lastSeq() : unanswered - 1,
      input_through_seq: scene.inputThroughSeq(),
      prior_checkpoint_seq: history.checkpoint?.seq ?? null,
      ...(cut.recent < cut.end && { recent_from_seq: seqAt(cut.recent) ?? firstSeq }),
    },
    budgets: {
      context_limit_tokens: limits.contextTokens,
      trigger_tokens: limits.trigger === 0 ? null : limits.trigger,
      input_tokens_before: facts.before,
      input_tokens_after: facts.after,
      max_summary_bytes: run.compaction.maxSummaryBytes,
      keep_recent_tokens: run.compaction.keepRecentTokens,
    },
  };
}

async function rehydrate(
  scene: CompactionScene,
  facts: {
    readonly opened: readonly string[];
    readonly kept: readonly HistoryMessage[];
    readonly fixed: number;
    readonly roomTokens: number;
  },
): Promise<void> {
  const { history, estimator, stages, workspaceRoot, run } = scene;
  const roomBytes = estimator.bytesOf(Math.max(0, facts.roomTokens));
  const place = { cwd: workspaceRoot, workspaceRoot, policy: stages.policy() };
  const visible = openedPaths(facts.kept, run.toolSet);
  const files = await rehydrateFiles(facts.opened, visible, place, roomBytes);
  if (files.length === 0) return;
  await scene.log.append([{ runId: scene.runId, payload: { type: "context_rehydrated", files } }]);
  estimator.compacted(facts.fixed + history.byteLength);
}
