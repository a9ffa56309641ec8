import type { Digest, PermissionRule } from "@cookie-agent/sdk/protocol";

export type AgentMode = "primary" | "subagent" | "all" | "internal";

/** Stands for the model of the run that asks; internal agents only (C-080). */
export const PARENT_MODEL = "${parent_model}";

export interface AgentModel {
  /** A model key, or `PARENT_MODEL`. */
  readonly model: string;
  /** Null: the model's default variant; `base`: none; else that variant. */
  readonly variant: string | null;
}

/** An agent: who it is, which models it may use, what it is allowed to do, how it is told (C 3). */
export interface AgentDocument {
  readonly id: string;
  readonly source: "built_in" | "user" | "workspace";
  readonly description: string;
  readonly mode: AgentMode;
  readonly enabled: boolean;
  readonly models: readonly AgentModel[];
  /** 0: no cap of the document. */
  readonly maxOutputTokens: number;
  /** 0 outside `internal`. */
  readonly timeoutMs: number;
  /** In authored order; a later rule wins a tie (C-076). */
  readonly permissions: readonly PermissionRule[];
  readonly prompt: string;
  /** The file, and the line of each rule in it; absent for a document that is in none. */
  readonly written?: { readonly path: string; readonly ruleLines: readonly number[] };
  readonly documentFingerprint: Digest;
  readonly promptFingerprint: Digest;
}
