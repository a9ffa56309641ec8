import type { HostGrant, TrustTier } from "../protocol/manifest.ts";
import type { JsonObject } from "../protocol/scalars.ts";
import {
  MAX_FRAME_BYTES,
  PLUGIN_PROTOCOL_VERSION,
  PROGRESS_WINDOW_BYTES,
} from "../protocol/version.ts";

export interface InitializeFacts {
  readonly name: string;
  readonly tier: TrustTier;
  readonly manifestDigest: string | null;
  readonly protocolVersion?: string;
  readonly services: readonly HostGrant[];
  readonly raw: boolean;
  readonly dynamicTools: boolean;
  readonly config: JsonObject;
  readonly paths: { readonly workspace: string; readonly data: string; readonly scratch: string };
}

/** The params of `plugin/initialize` as a kernel sends them (E-023). */
export function initializeParams(facts: InitializeFacts): JsonObject {
  return {
    protocol_version: facts.protocolVersion ?? PLUGIN_PROTOCOL_VERSION,
    engine_version: "0.0.0-test",
    plugin: { name: facts.name, tier: facts.tier, manifest_digest: facts.manifestDigest },
    capabilities: {
      ping: true,
      shutdown: true,
      tools: true,
      event_streaming: true,
      event_publishing: true,
      interception: true,
      prepare: true,
      progress: true,
      ...(facts.raw ? { raw_output: true } : {}),
      dynamic_tools: facts.dynamicTools,
      services: facts.services,
    },
    config: facts.config,
    paths: facts.paths,
    limits: { frame_bytes: MAX_FRAME_BYTES, progress_window_bytes: PROGRESS_WINDOW_BYTES },
  };
}
