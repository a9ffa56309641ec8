import type { HookName, HostGrant } from "@cookie-agent/sdk/protocol";
import { type EventClaims, NO_EVENT_CLAIMS } from "./event-claims.ts";
import type { ResolvedTool } from "./plugin-facts.ts";

/** What a plugin declares, reduced to what its tier and the user's grants allow (E-114). */
export interface TierClaims {
  readonly tools: readonly ResolvedTool[];
  readonly instructions: string | null;
  /** Host services in force. */
  readonly services: readonly HostGrant[];
  readonly intercept: readonly HookName[];
  readonly inheritEnv: "*" | readonly string[];
  readonly kernelConfig: readonly string[];
  readonly events: EventClaims;
  /** It may replace its list of tools while it runs (E-130). */
  readonly dynamicTools: boolean;
}

/** Nothing claimed: a plugin that failed to load, or one that has not introduced itself yet. */
export const NO_CLAIMS: TierClaims = {
  tools: [],
  instructions: null,
  services: [],
  intercept: [],
  inheritEnv: [],
  kernelConfig: [],
  events: NO_EVENT_CLAIMS,
  dynamicTools: false,
};
