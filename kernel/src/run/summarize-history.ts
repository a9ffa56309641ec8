import type { InternalAgentInvocationId, InternalAgentRunId } from "@cookie-agent/sdk/protocol";
import { publicArtifactUri } from "../artifact/artifact-uri.ts";
import { type InternalAgentCall, runInternalAgent } from "../internal-agent/run-internal-agent.ts";
import type { BoundModel, HistoryMessage, ModelRequest } from "../model/bound-model.ts";
import { sha256Hex } from "../support/digest.ts";
import type { CompactionScene } from "./compaction-scene.ts";
import { withContextDocuments } from "./compose-prompt.ts";
import { flattenHistory } from "./flatten-history.ts";
import { trimHistory } from "./trim-history.ts";

export type Summary =
  | {
      readonly kind: "written";
      readonly text: string;
      /** The model came to the end of its tokens. */
      readonly isCut: boolean;
      readonly invocationId: InternalAgentInvocationId;
      readonly internalRunId: InternalAgentRunId;
    }
  | { readonly kind: "cancelled" | "failed"; readonly reason: string };

interface Asked {
  /** The messages before this index are summarized. */
  readonly end: number;
  readonly instruction: string;
  /** Of the conversation as it stands, estimated. */
  readonly beforeTokens: number;
}

type Request = ReturnType<InternalAgentCall["request"]>;

/** For the answer, where the context is large enough. */
const ANSWER_TOKENS = 4096;

/**
 * Has the conversation summarized: first all of it, with prompt and tools as the model knows them from before; once more
 * as a shortened copy when a model refuses it as too long (S 10.4).
 */
export async function summarize(
  scene: CompactionScene,
  asked: Asked,
  signal: AbortSignal,
): Promise<Summary> {
  const whole = await ask(scene, asked, () => wholeRequest(scene, asked), signal);
  if (whole.kind !== "failed" || whole.failure.model_error?.kind !== "context_length") {
    return summaryOf(whole);
  }
  let flat: Promise<HistoryMessage[]> | undefined;
  const shortened = await ask(
    scene,
    asked,
    async (model) => {
      flat ??= flatten(scene, asked);
      return shortRequest(scene, asked, await flat, model);
    },
    signal,
  );
  return summaryOf(shortened);
}

type Outcome = Awaited<ReturnType<typeof runInternalAgent>>;

function ask(
  { run, chainIndex, log, runId, budget }: CompactionScene,
  { instruction, end }: Asked,
  request: (model: BoundModel) => Request,
  signal: AbortSignal,
): Promise<Outcome> {
  return runInternalAgent(
    {
      runId,
      log,
      sources: run.internalAgents,
      parentModels: run.chain.slice(chainIndex),
      retry: run.retry,
      forbids: () => budget?.check(log.held)?.reason ?? null,
    },
    {
      kind: "context_compaction",
      input: { summary: `${end} messages`, digest: sha256Hex(instruction) },
      request: (_prompt, model) => request(model),
      maxOutputBytes: run.compaction.maxSummaryBytes,
      judgesInput: false,
    },
    signal,
  );
}

function summaryOf(outcome: Outcome): Summary {
  switch (outcome.kind) {
    case "completed": {
      const { text, turn, invocationId, internalRunId } = outcome;
      const isCut = turn.finish_reason === "length";
      return { kind: "written", text, isCut, invocationId, internalRunId };
    }
    case "failed":
      return { kind: "failed", reason: outcome.failure.message };
    case "cancelled":
      return { kind: "cancelled", reason: "it was stopped" };
  }
}

function wholeRequest({ history, run }: CompactionScene, { end, instruction }: Asked) {
  const instructed: HistoryMessage = { role: "user", text: instruction, injected: true };
  return {
    system: withContextDocuments(run.systemPrompt, history.contextDocuments),
    history: [...history.messages.slice(0, end), instructed],
    tools: run.toolSet.specs,
    usedCallIds: history.usedCallIds,
    isAside: true,
  } satisfies Omit<ModelRequest, "maxOutputTokens">;
}

function flatten({ history, stages, site }: CompactionScene, { end }: Asked) {
  return flattenHistory(history.messages.slice(0, end), async (bytes) => {
    const { sha256 } = await stages.artifacts.put(site.rootSessionId, bytes);
    return publicArtifactUri(sha256);
  });
}

function shortRequest(
  scene: CompactionScene,
  asked: Asked,
  flat: readonly HistoryMessage[],
  model: BoundModel,
): Request {
  const { history, run } = scene;
  const system = withContextDocuments(run.systemPrompt, history.contextDocuments);
  const instructed: HistoryMessage = { role: "user", text: asked.instruction, injected: true };
  const room = roomBytes(scene, asked, model) - Buffer.byteLength(system + asked.instruction);
  const messages = trimHistory(flat, Math.max(1024, room), history.checkpoint !== null);
  return { system, history: [...messages, instructed], tools: [], isAside: true };
}

/** What a request may have: where estimate or declared limit were wrong, half of what was refused. */
function roomBytes(
  { estimator }: CompactionScene,
  { beforeTokens }: Asked,
  { contextTokens: limit }: BoundModel,
): number {
  const isKnown = limit !== null && beforeTokens > limit;
  const tokens = isKnown ? Math.floor(limit * 0.75) : Math.floor(beforeTokens / 2);
  return estimator.bytesOf(tokens - Math.min(ANSWER_TOKENS, Math.floor(tokens / 4)));
}
