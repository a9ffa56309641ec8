import type { Manifest } from "@cookie-agent/sdk/protocol";

/** A shipped plugin as the composition root passes it in. */
export interface FirstPartyFacts {
  readonly id: string;
  readonly directory: string;
  readonly manifest: Manifest;
  /** True: configuration cannot disable it. */
  readonly required?: boolean;
}
