import type { Revisions, RuntimeSnapshot } from "@cookie-agent/sdk/protocol";
import type { AgentDocument } from "../config/agent-document.ts";
import { revisionOf } from "../support/digest.ts";
import { buildSlotTable } from "../tool/tool-slots.ts";
import type { AdmissionFacts } from "./admit-run.ts";
import { availableChain, defaultAgentId, isRootRunnable } from "./resolve-agent.ts";

/** What can be selected now: models, agents and the slots of the active profile (D-040). */
export function runtimeSnapshot(facts: AdmissionFacts): RuntimeSnapshot {
  const { agents, models } = facts;
  const table = buildSlotTable({ plugins: facts.plugins(), tools: facts.config.tools });
  const documents = [...agents.values()].sort((a, b) => (a.id < b.id ? -1 : 1));
  return {
    snapshot_schema_version: 5,
    runtime_revision: facts.revisions(documents).runtime_revision,
    models: models.list(),
    agents: documents.map((document) => ({
      id: document.id,
      description: document.description,
      mode: document.mode,
      enabled: document.enabled,
      runnable_as_root: isRootRunnable(document, models),
      resolved_fallback: availableChain(document, models),
    })),
    default_agent: defaultAgentId(facts),
    tools: table.entries().map(({ name, plugin, tier, action, tool, spec, shadowed }) => ({
      name,
      plugin,
      tier,
      action,
      concurrency: tool.concurrency,
      description: spec.description,
      shadowed: [...shadowed],
    })),
  };
}

/** The seven revisions of a runtime without a catalog or a provider store; equal input, equal revision. */
export function computeRevisions(
  facts: Pick<AdmissionFacts, "models" | "plugins">,
  documents: readonly AgentDocument[],
): Revisions {
  const parts = {
    catalog_revision: revisionOf("catalog", null),
    provider_state_revision: revisionOf("provider-state", null),
    model_revision: facts.models.revision,
    agent_revision: revisionOf(
      "agents",
      documents.map(({ id, documentFingerprint }) => [id, documentFingerprint]),
    ),
    recipe_registry_revision: revisionOf("recipe-registry", 1),
    manifest_revision: revisionOf(
      "manifests",
      facts.plugins().map(({ name, manifestDigest }) => [name, manifestDigest]),
    ),
  };
  return { runtime_revision: revisionOf("runtime", parts), ...parts };
}
