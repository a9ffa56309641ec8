import {
  type AgentSnapshot,
  type ClientKey,
  CookieError,
  type Digest,
  type EventPayload,
  type InjectedMessage,
  type OverlayRule,
  type Revisions,
  type RunId,
  type RunSelection,
} from "@cookie-agent/sdk/protocol";
import type { AgentDocument } from "../config/agent-document.ts";
import type { ContextDocument } from "../config/agents-md.ts";
import type { Config, ContextCompactionConfig, ModelRetryConfig } from "../config/config.ts";
import type { EventDraft } from "../event/event-draft.ts";
import type { InternalAgentSources } from "../internal-agent/run-internal-agent.ts";
import type { BoundModel } from "../model/bound-model.ts";
import type { PluginFacts } from "../plugin/plugin-facts.ts";
import { createId } from "../support/create-id.ts";
import { sha256Hex } from "../support/digest.ts";
import { buildSlotTable, type ToolSet } from "../tool/tool-slots.ts";
import { availablePredicates } from "./available-predicates.ts";
import { composePrompt } from "./compose-prompt.ts";
import { expandTemplates, type TemplateLines, templateLines } from "./expand-templates.ts";
import { type AgentFacts, resolveAgent, selectSuffix } from "./resolve-agent.ts";

export interface AdmissionFacts extends AgentFacts {
  readonly config: Config;
  readonly workspaceRoot: string;
  plugins(): readonly PluginFacts[];
  revisions(agents: readonly AgentDocument[]): Revisions;
}

/** Of the composed system prompt (S 0.3). */
const MAX_PROMPT_BYTES = 128 * 1024;

/** A run with everything frozen that must not change under it (S-125); overlays are read afresh at each check. */
export interface AdmittedRun {
  readonly runId: RunId;
  readonly selection: RunSelection;
  readonly agent: AgentSnapshot;
  readonly chain: readonly BoundModel[];
  readonly toolSet: ToolSet;
  readonly systemPrompt: string;
  readonly promptFingerprint: string;
  readonly retry: ModelRetryConfig;
  readonly compaction: ContextCompactionConfig;
  readonly internalAgents: InternalAgentSources;
  readonly revisions: Revisions;
  /** What plugins put before the submitted input. */
  readonly injected?: readonly InjectedMessage[];
}

/**
 * The agent of a selection with its composed prompt and chain, as events record it (S 0.3).
 * @param depth Of the session below its root, which is 0.
 */
export function snapshotAgent(
  facts: AdmissionFacts,
  selection: RunSelection,
  depth: number,
): { document: AgentDocument; snapshot: AgentSnapshot; templates: TemplateLines } {
  const document = resolveAgent(facts, selection);
  const { chain, suffixStart } = selectSuffix(document, selection.model, facts.models);
  if (chain.length <= suffixStart) {
    throw new CookieError(
      "no_runnable_model",
      `neither ${selection.model.model} nor a model behind it in the chain of agent ${document.id} can run; ` +
        "connect a provider or select a model that is configured",
    );
  }
  const { maxDepth } = facts.config.delegation;
  const templates = templateLines(document, { agents: facts.agents, depth, maxDepth });
  const composed = composePrompt({
    templates,
    agentPrompt: document.prompt,
    workspaceRoot: facts.workspaceRoot,
    plugins: facts.plugins(),
    today: new Date().toISOString().slice(0, 10),
  });
  if (Buffer.byteLength(composed) > MAX_PROMPT_BYTES) {
    throw new CookieError(
      "resource_limit",
      `the prompt of agent ${document.id} with its tool sections is longer than ${MAX_PROMPT_BYTES} bytes`,
    );
  }
  return {
    document,
    templates,
    snapshot: {
      agent: document.id,
      schema: 6,
      mode: document.mode,
      description: document.description,
      document_source: document.source,
      document_fingerprint: document.documentFingerprint,
      composed_prompt: composed,
      prompt_fingerprint: sha256Hex(composed),
      max_output_tokens: document.maxOutputTokens,
      permissions: [...document.permissions],
      fallback_chain: chain,
      selected_suffix_start: suffixStart,
    },
  };
}

/** Resolves and freezes what a run needs; nothing is written (S 5.1 steps 5 to 9). */
export async function admitRun(
  facts: AdmissionFacts,
  selection: RunSelection,
  { overlay, depth }: { readonly overlay: readonly OverlayRule[]; readonly depth: number },
): Promise<AdmittedRun> {
  const { document, snapshot, templates } = snapshotAgent(facts, selection, depth);
  const suffix = snapshot.fallback_chain.slice(snapshot.selected_suffix_start);
  const bound = await Promise.all(suffix.map((entry) => facts.models.bind(entry)));
  const chain = bound.filter((model) => model !== undefined);
  const first = chain[0];
  if (first === undefined) {
    throw new CookieError(
      "no_runnable_model",
      `model ${selection.model.model} is not available; run \`cookie doctor\` to see why`,
    );
  }
  const table = buildSlotTable({ plugins: facts.plugins(), tools: facts.config.tools });
  const toolSet = table.freeze({
    policy: {
      documentRules: document.permissions,
      overlayRules: overlay,
      workspaceRoot: facts.workspaceRoot,
    },
    toolCalling: first.toolCalling,
    available: availablePredicates(templates, facts.config),
    describe: (text) => expandTemplates(text, templates).text,
  });
  return {
    runId: createId<RunId>(),
    selection,
    agent: snapshot,
    chain,
    toolSet,
    systemPrompt: snapshot.composed_prompt,
    promptFingerprint: snapshot.prompt_fingerprint,
    retry: facts.config.modelRetry,
    compaction: facts.config.contextCompaction,
    internalAgents: { agents: facts.agents, models: facts.models },
    revisions: facts.revisions([document]),
  };
}

/** What the log says first of an admitted run, in this order (S-121). */
export function openingEvents(
  run: AdmittedRun,
  start: {
    readonly clientRunId: ClientKey;
    /** What is submitted. */
    readonly input: string;
    /** What the person said, before plugins changed it. */
    readonly originalInput: string;
    readonly requestDigest: Digest;
    readonly inputThroughSeq: number;
    readonly documents: readonly ContextDocument[];
  },
): EventDraft[] {
  const documents = [...start.documents];
  const payloads: EventPayload[] = [
    {
      type: "run_started",
      client_run_id: start.clientRunId,
      selection: run.selection,
      agent: run.agent,
      ...run.revisions,
      selected_suffix: run.chain.map((model) => model.resolved),
      input_through_seq: start.inputThroughSeq,
      request_digest: start.requestDigest,
    },
    ...(documents.length > 0 ? [{ type: "agent_md_loaded" as const, entries: documents }] : []),
    ...(run.injected ?? []).map(({ role, content }) => ({
      type: "message_injected" as const,
      role,
      input: content,
    })),
    ...inputEvents("user_input_submitted", start),
  ];
  return payloads.map((payload) => ({ payload, runId: run.runId }));
}

/** What records that somebody said something, after plugins may have changed it (E-167). */
export function inputEvents(
  type: "user_input_submitted" | "user_input_admitted",
  said: { readonly input: string; readonly originalInput: string },
): EventPayload[] {
  const { input, originalInput } = said;
  return [
    ...(input === originalInput
      ? []
      : [{ type: "user_input_transformed" as const, original_input: originalInput, input }]),
    { type, input },
  ];
}
