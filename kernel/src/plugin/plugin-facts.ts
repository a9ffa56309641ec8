import type {
  Concurrency,
  Digest,
  OutputDeclaration,
  PrepareDeclaration,
  Revision,
  ToolDeclaration,
  TrustTier,
} from "@cookie-agent/sdk/protocol";

/** A tool as its tier lets it run: every default filled in, everything beyond the tier taken back (E-114). */
export interface ResolvedTool {
  /** As the plugin declared it, unclamped. */
  readonly declaration: ToolDeclaration;
  /** Digest of the declaration's canonical JSON; pinned at run admission (E-074). */
  readonly declarationDigest: Digest;
  /** What stands behind it: where the plugin comes from and what is started for it (E-075). */
  readonly implementation?: Digest;
  readonly concurrency: Concurrency;
  readonly output: OutputDeclaration;
  readonly truncation: "bounded" | "opt_out";
  /** Null: no kernel timeout. */
  readonly timeoutMs: number | null;
  /** The short form `primary_resource_param` is expanded. */
  readonly prepare: PrepareDeclaration;
  /** Argument shown next to the title; null when there is none. */
  readonly displayArgument: string | null;
  readonly revalidate: boolean;
  readonly retrySafe: boolean;
}

/** What a running process added to the plugin's tools; gone with it (E-135). */
export interface DynamicFacts {
  readonly tools: readonly ResolvedTool[];
  /** Beginnings of names that it declares when they are called (E-133). */
  readonly prefixes: readonly string[];
}

/** What the rooms above know about one plugin without talking to it. */
export interface PluginFacts {
  readonly name: string;
  readonly tier: TrustTier;
  readonly version: string | null;
  readonly source: "bundled" | "user" | "workspace";
  /** Empty while a plugin without manifest is not connected (E-060). */
  readonly tools: readonly ResolvedTool[];
  /** What its running process lists beside `tools` (E-130); absent when nothing. */
  readonly dynamic?: DynamicFacts;
  /** System-prompt section of the plugin, after tier clamping. */
  readonly instructions: string | null;
  /** Null without a manifest. */
  readonly manifestDigest: Revision | null;
  readonly required: boolean;
  /** Names that it served until a reload failed: nobody else takes them over (B136). */
  readonly held?: readonly string[];
  /** It wants to run as soon as a run that has a tool of its asks the model (E-057). */
  readonly warmsWithRun?: boolean;
  /** Kernel services that it implements; absent when none. */
  readonly provides?: readonly string[];
  /** What was clamped, refused or went wrong, one sentence each. */
  readonly diagnostics: readonly string[];
}
