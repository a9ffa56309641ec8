import type { HostGrant, TrustTier } from "@cookie-agent/sdk/protocol";
import type { ContextGrants } from "./context-grants.ts";
import type { HostServices } from "./host-services.ts";

/** What answering a plugin's requests needs of its connection. */
export interface HostRequestsOptions {
  readonly plugin: string;
  readonly tier: TrustTier;
  readonly grants: ContextGrants;
  readonly services: HostServices;
  /** False until `plugin/initialize` is answered (E-022). */
  initialized(): boolean;
  isGranted(service: HostGrant): boolean;
  /** Sections of the kernel's configuration that the plugin may read (E-121). */
  kernelConfig(): readonly string[];
  /** The private directory of this process. */
  scratch(): string;
}
