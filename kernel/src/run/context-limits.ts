import type { ContextDocument } from "../config/agents-md.ts";
import type { ContextCompactionConfig } from "../config/config.ts";
import type { AdmittedRun } from "./admit-run.ts";
import { withContextDocuments } from "./compose-prompt.ts";

/** Tokens from which on a conversation is to be summarized; 0: never by itself (S 10.1). */
export function triggerTokens(
  { trigger }: Pick<ContextCompactionConfig, "trigger">,
  contextTokens: number | null,
): number {
  if (contextTokens === null) return 0;
  return trigger.kind === "percent"
    ? Math.floor((contextTokens * trigger.percent) / 100)
    : Math.max(0, contextTokens - trigger.bufferTokens);
}

/** Bytes of what every request of a run has beside its messages: prompt, documents, tools. */
export function fixedBytes(
  run: Pick<AdmittedRun, "systemPrompt" | "toolSet">,
  documents: readonly ContextDocument[],
): number {
  const system = withContextDocuments(run.systemPrompt, documents);
  return Buffer.byteLength(system) + Buffer.byteLength(JSON.stringify(run.toolSet.specs));
}
