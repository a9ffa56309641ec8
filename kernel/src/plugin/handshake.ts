import { isDeepStrictEqual } from "node:util";
import {
  type Capabilities,
  CookieError,
  type HostGrant,
  isCookieError,
  MAX_FRAME_BYTES,
  type ParamsInput,
  PLUGIN_PROTOCOL_VERSION,
  PluginInitialize,
  PROGRESS_WINDOW_BYTES,
  type ResultOf,
  type ToolDeclaration,
} from "@cookie-agent/sdk/protocol";
import type { Connection } from "@cookie-agent/sdk/rpc";
import { canonicalJson } from "../support/canonical-json.ts";
import { checkDeclarations } from "./check-declaration.ts";
import { eventClaims } from "./event-claims.ts";
import { SERVED_GRANTS } from "./host-services.ts";
import type { LoadedPlugin } from "./loaded-plugin.ts";
import type { TierClaims } from "./tier-claims.ts";
import { grantServices, resolveTools } from "./trust-tier.ts";

export interface HandshakeFacts {
  readonly engineVersion: string;
  readonly paths: { readonly workspace: string; readonly data: string; readonly scratch: string };
  readonly timeoutMs: number;
}

/**
 * Introduces kernel and plugin to each other (E-022…E-024) and yields what the plugin may do in this process. Rejects
 * with `version_mismatch`, `manifest_mismatch`, `invalid_declaration`, `protocol_violation`, `timeout` or
 * `plugin_crashed`.
 */
export async function shakeHands(
  rpc: Connection,
  plugin: LoadedPlugin,
  facts: HandshakeFacts,
): Promise<TierClaims> {
  const introduction = await rpc.request(PluginInitialize, initializeParams(plugin, facts), {
    timeoutMs: facts.timeoutMs,
  });
  checkIdentity(introduction, plugin);
  return plugin.manifest === null
    ? judgeStranger(introduction, plugin)
    : judgeKnown(introduction, plugin);
}

function initializeParams(
  plugin: LoadedPlugin,
  facts: HandshakeFacts,
): ParamsInput<typeof PluginInitialize> {
  return {
    protocol_version: PLUGIN_PROTOCOL_VERSION,
    engine_version: facts.engineVersion,
    plugin: {
      name: plugin.name,
      tier: plugin.tier,
      manifest_digest: plugin.manifestDigest,
    },
    capabilities: {
      ping: true,
      shutdown: true,
      tools: true,
      event_streaming: true,
      event_publishing: true,
      interception: true,
      prepare: true,
      progress: true,
      raw_output: true,
      dynamic_tools: plugin.claims.dynamicTools,
      services: servicesInForce(plugin),
    },
    config: plugin.config,
    paths: facts.paths,
    limits: { frame_bytes: MAX_FRAME_BYTES, progress_window_bytes: PROGRESS_WINDOW_BYTES },
  };
}

/** Before a plugin without manifest has spoken, what its tier would get is all that can be said. */
function servicesInForce(plugin: LoadedPlugin): HostGrant[] {
  const services =
    plugin.manifest === null
      ? grantServices(SERVED_GRANTS, { ...plugin.subject, diagnose: () => undefined })
      : plugin.claims.services;
  return services.filter((service) => SERVED_GRANTS.includes(service));
}

function checkIdentity(introduction: ResultOf<typeof PluginInitialize>, plugin: LoadedPlugin) {
  if (introduction.protocol_version !== PLUGIN_PROTOCOL_VERSION) {
    const found = introduction.protocol_version.slice(0, 64);
    throw new CookieError(
      "version_mismatch",
      `the plugin answered with protocol ${found}, this kernel speaks ${PLUGIN_PROTOCOL_VERSION}`,
      { data: { expected: PLUGIN_PROTOCOL_VERSION, found } },
    );
  }
  if (introduction.name !== plugin.name) {
    throw new CookieError(
      "protocol_violation",
      `the plugin calls itself ${introduction.name.slice(0, 128)}, it is configured as ${plugin.name}; use one name`,
    );
  }
}

async function judgeStranger(
  { capabilities, tools }: ResultOf<typeof PluginInitialize>,
  plugin: LoadedPlugin,
): Promise<TierClaims> {
  if (capabilities === undefined || tools === undefined) {
    throw new CookieError(
      "protocol_violation",
      "a plugin without manifest must answer plugin/initialize with its capabilities and tools",
    );
  }
  await checkDeclarations(tools, plugin.tier);
  return {
    ...plugin.claims,
    tools: resolveTools(tools, plugin.subject),
    services: grantServices(capabilities.host ?? [], plugin.subject),
    events: eventClaims(capabilities),
    intercept: capabilities.intercept ?? [],
  };
}

/** The manifest is the upper bound of what a process may claim (E-035). */
function judgeKnown(
  { capabilities, tools }: ResultOf<typeof PluginInitialize>,
  plugin: LoadedPlugin,
): TierClaims {
  const declared = plugin.manifest?.tools ?? [];
  if (capabilities !== undefined) {
    checkCapabilities(capabilities, plugin.manifest?.capabilities ?? {}, declared.length > 0);
  }
  const services =
    capabilities?.host === undefined
      ? plugin.claims.services
      : plugin.claims.services.filter((service) => capabilities.host?.includes(service));
  const claims = {
    ...plugin.claims,
    services,
    events: eventClaims(capabilities, plugin.claims.events),
    intercept: capabilities?.intercept ?? plugin.claims.intercept,
    dynamicTools:
      plugin.claims.dynamicTools &&
      (capabilities === undefined || capabilities.dynamic_tools === true),
  };
  if (tools === undefined) return claims;
  for (const tool of tools) checkDeclared(tool, declared);
  const served = new Set(tools.map(({ name }) => name));
  return {
    ...claims,
    tools: claims.tools.filter(({ declaration }) => served.has(declaration.name)),
  };
}

function checkDeclared(tool: ToolDeclaration, declared: readonly ToolDeclaration[]): void {
  const expected = declared.find(({ name }) => name === tool.name);
  if (expected === undefined) mismatch(`the tool ${tool.name} is not in the manifest`);
  if (canonicalJson(expected) !== canonicalJson(tool)) {
    mismatch(`the tool ${tool.name} differs from the manifest; generate the manifest anew`);
  }
}

function checkCapabilities(
  claimed: Capabilities,
  bound: Capabilities,
  declaresTools: boolean,
): void {
  const limits: Record<string, unknown> = { ...bound, tools: declaresTools };
  for (const [capability, value] of Object.entries(claimed)) {
    if (!isWithin(value, limits[capability])) {
      mismatch(`the capability ${capability} is larger than in the manifest`);
    }
  }
}

function isWithin(value: unknown, bound: unknown): boolean {
  if (value === undefined || value === false || bound === true) return true;
  if (Array.isArray(value)) {
    return value.length === 0 || (Array.isArray(bound) && value.every((v) => bound.includes(v)));
  }
  return isDeepStrictEqual(value, bound);
}

function mismatch(problem: string): never {
  throw new CookieError("manifest_mismatch", problem);
}

/** Failures that another start of the same files would only repeat. */
export function isLasting(error: unknown): boolean {
  return (
    isCookieError(error) &&
    [
      "version_mismatch",
      "manifest_mismatch",
      "integrity_mismatch",
      "invalid_declaration",
      "protocol_violation",
    ].includes(error.code)
  );
}
