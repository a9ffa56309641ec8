import {
  CookieError,
  type Digest,
  type HostGrant,
  type Manifest,
  type PermissionAction,
  type PrepareDeclaration,
  type ToolDeclaration,
  type TrustTier,
} from "@cookie-agent/sdk/protocol";
import { canonicalJson } from "../support/canonical-json.ts";
import { keptDelay } from "../support/deadline.ts";
import { sha256Hex } from "../support/digest.ts";
import { eventClaims, filterProblems } from "./event-claims.ts";
import type { ResolvedTool } from "./plugin-facts.ts";
import type { TierClaims } from "./tier-claims.ts";

/** Actions that each tool name has in the shipped manifests; a replacement may use those (E-073). */
export type SlotActions = ReadonlyMap<string, ReadonlySet<PermissionAction>>;

/** Whose declaration is judged. */
export interface TierSubject {
  readonly name: string;
  readonly tier: TrustTier;
  /** Of the plugin's origin, manifest and program; goes into the identity of its calls (E-075). */
  readonly implementation?: Digest;
  /** Capabilities the user granted to a trusted plugin. */
  readonly grants: ReadonlySet<string>;
  readonly toolTimeoutMs: number;
  readonly slotActions: SlotActions;
  /** Takes one sentence for the plugin's status record. */
  diagnose(text: string): void;
}

/**
 * What a manifest amounts to at a tier (E-112…E-115): harmless excess is clamped with a diagnostic.
 * Throws `invalid_declaration` naming the member for excess that cannot be taken back.
 */
export function applyTier(manifest: Manifest, subject: TierSubject): TierClaims {
  const { tier } = subject;
  if (tier !== "first_party") {
    if (manifest.name.startsWith("builtin.")) {
      refuse("name", `the name ${manifest.name} is reserved for shipped plugins`);
    }
    if ((manifest.provides ?? []).length > 0) {
      refuse("provides", "only shipped plugins may provide kernel services");
    }
    if (manifest.runtime.kind === "node" && manifest.runtime.group !== undefined) {
      refuse("runtime.group", "only shipped plugins may share a host process");
    }
  }
  if (manifest.capabilities?.dynamic_tools === true && tier === "untrusted") {
    subject.diagnose("capabilities.dynamic_tools is not available to an untrusted plugin");
  }
  for (const problem of filterProblems(manifest.capabilities)) subject.diagnose(problem);
  return {
    tools: resolveTools(manifest.tools ?? [], subject),
    instructions: clampInstructions(manifest, subject),
    services: grantServices(manifest.capabilities?.host ?? [], subject),
    intercept: manifest.capabilities?.intercept ?? [],
    inheritEnv: clampInherit(manifest.env?.inherit ?? [], subject),
    kernelConfig: clampKernelConfig(manifest.kernel_config ?? [], subject),
    events: eventClaims(manifest.capabilities),
    dynamicTools: manifest.capabilities?.dynamic_tools === true && tier !== "untrusted",
  };
}

/** Judges tool declarations alone: for plugins that introduce themselves in the handshake. */
export function resolveTools(
  declarations: readonly ToolDeclaration[],
  subject: TierSubject,
): ResolvedTool[] {
  return declarations.map((declaration) => resolveTool(declaration, subject));
}

/** The host services a plugin gets of those it wants. */
export function grantServices(
  wanted: readonly HostGrant[],
  subject: Pick<TierSubject, "tier" | "grants" | "diagnose">,
): HostGrant[] {
  return wanted.filter((service) => {
    if (mayUse(service, subject)) return true;
    subject.diagnose(`the host service ${service} is not granted to this ${subject.tier} plugin`);
    return false;
  });
}

/** The same for one declaration. */
export function resolveTool(declaration: ToolDeclaration, subject: TierSubject): ResolvedTool {
  const prepare = expandPrepare(declaration);
  checkActions(declaration, prepare, subject);
  return {
    declaration,
    declarationDigest: sha256Hex(canonicalJson(declaration)),
    ...(subject.implementation && { implementation: subject.implementation }),
    concurrency: clampConcurrency(declaration, subject),
    output: declaration.output ?? { mode: "single" },
    truncation: clampTruncation(declaration, subject),
    timeoutMs: clampTimeout(declaration, subject),
    prepare,
    displayArgument: displayArgument(declaration, prepare),
    revalidate: declaration.revalidate ?? false,
    retrySafe: clampRetrySafe(declaration, subject),
  };
}

function expandPrepare(declaration: ToolDeclaration): PrepareDeclaration {
  if (declaration.prepare !== undefined) return declaration.prepare;
  const arg = declaration.primary_resource_param;
  const value = typeof arg === "string" ? { arg } : { none: true as const };
  return { mode: "static", resources: [{ action: "plugin", ...value }] };
}

function displayArgument(declaration: ToolDeclaration, prepare: PrepareDeclaration): string | null {
  if (declaration.display_argument !== undefined) return declaration.display_argument;
  if (declaration.primary_resource_param) return declaration.primary_resource_param;
  return prepare.mode === "static" ? (prepare.resources[0]?.arg ?? null) : null;
}

function checkActions(
  declaration: ToolDeclaration,
  prepare: PrepareDeclaration,
  subject: TierSubject,
): void {
  if (subject.tier === "first_party") return;
  const where = `tools.${declaration.name}.prepare`;
  const actions =
    prepare.mode === "static" ? prepare.resources.map(({ action }) => action) : prepare.actions;
  for (const action of actions) {
    if (action === "plugin") continue;
    if (subject.tier === "trusted" && subject.grants.has(action)) continue;
    if (!subject.slotActions.get(declaration.name)?.has(action)) {
      refuse(where, `the action ${action} is beyond the tier ${subject.tier}`);
    }
    if (subject.tier === "untrusted" && prepare.mode === "dynamic") {
      refuse(where, `an untrusted plugin must prepare the action ${action} statically`);
    }
  }
}

function clampConcurrency(declaration: ToolDeclaration, subject: TierSubject) {
  const wanted = declaration.concurrency ?? "exclusive";
  if (wanted === "exclusive" || subject.tier !== "untrusted") return wanted;
  clamped(subject, declaration, "concurrency", "exclusive");
  return "exclusive";
}

function clampTruncation(declaration: ToolDeclaration, subject: TierSubject) {
  const wanted = declaration.result_truncation ?? "bounded";
  if (wanted === "bounded" || mayDeclare("result_truncation", subject)) return wanted;
  clamped(subject, declaration, "result_truncation", "bounded");
  return "bounded";
}

function clampTimeout(declaration: ToolDeclaration, subject: TierSubject): number | null {
  const wanted = declaration.timeout_ms;
  const { toolTimeoutMs } = subject;
  if (wanted === undefined) return toolTimeoutMs;
  if (wanted === null) {
    if (mayDeclare("timeout_ms", subject)) return null;
  } else if (subject.tier !== "untrusted" || wanted <= toolTimeoutMs) {
    return keptDelay(wanted);
  }
  clamped(subject, declaration, "timeout_ms", String(toolTimeoutMs));
  return toolTimeoutMs;
}

function clampRetrySafe(declaration: ToolDeclaration, subject: TierSubject): boolean {
  if (declaration.retry_safe !== true) return false;
  if (subject.tier !== "untrusted") return true;
  clamped(subject, declaration, "retry_safe", "false");
  return false;
}

function clampInstructions(manifest: Manifest, subject: TierSubject): string | null {
  const { instructions } = manifest;
  if (instructions === undefined) return null;
  if (subject.tier === "untrusted") {
    subject.diagnose("instructions are not available to an untrusted plugin and are left out");
    return null;
  }
  if (subject.tier === "trusted" && instructions.includes("{{")) {
    subject.diagnose("templates in instructions are left as they are for a trusted plugin");
  }
  return instructions;
}

function clampInherit(wanted: "*" | readonly string[], subject: TierSubject) {
  if (wanted !== "*" && wanted.length === 0) return [];
  if (wanted === "*" ? subject.tier === "first_party" : mayDeclare("env.inherit", subject)) {
    return wanted;
  }
  subject.diagnose(`env.inherit is beyond the tier ${subject.tier}; nothing is inherited`);
  return [];
}

function clampKernelConfig(wanted: readonly string[], subject: TierSubject): readonly string[] {
  if (wanted.length === 0 || mayDeclare("kernel_config", subject)) return wanted;
  subject.diagnose(`kernel_config is beyond the tier ${subject.tier}; no section is served`);
  return [];
}

const FREE_SERVICES: ReadonlySet<HostGrant> = new Set([
  "artifacts.write",
  "artifacts.read",
  "media",
  "session.info",
]);
const TRUSTED_SERVICES: ReadonlySet<HostGrant> = new Set(["permission.ask", "skills.read"]);
const GRANTABLE_SERVICES: ReadonlySet<HostGrant> = new Set(["delegation", "messaging", "goals"]);

function mayUse(service: HostGrant, subject: Pick<TierSubject, "tier" | "grants">): boolean {
  if (subject.tier === "first_party" || FREE_SERVICES.has(service)) return true;
  if (subject.tier === "untrusted") return false;
  return (
    TRUSTED_SERVICES.has(service) ||
    (GRANTABLE_SERVICES.has(service) && subject.grants.has(service))
  );
}

/** Capabilities that are the first party's own, a trusted plugin's by grant, and nobody else's. */
function mayDeclare(capability: string, subject: TierSubject): boolean {
  return (
    subject.tier === "first_party" || (subject.tier === "trusted" && subject.grants.has(capability))
  );
}

function clamped(subject: TierSubject, tool: ToolDeclaration, member: string, to: string): void {
  subject.diagnose(
    `tools.${tool.name}.${member} is beyond the tier ${subject.tier}; ${to} is used`,
  );
}

function refuse(member: string, problem: string): never {
  throw new CookieError("invalid_declaration", `${member}: ${problem}`, { data: { member } });
}
