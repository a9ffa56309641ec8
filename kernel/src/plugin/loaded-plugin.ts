import type {
  CookieError,
  Digest,
  JsonObject,
  Manifest,
  Revision,
  TrustTier,
} from "@cookie-agent/sdk/protocol";
import type { TierClaims } from "./tier-claims.ts";
import type { TierSubject } from "./trust-tier.ts";

/** How a plugin's code gets a process. */
export type LaunchPlan =
  | {
      readonly kind: "own";
      readonly command: string;
      readonly args: readonly string[];
      /** File and digest to compare before each spawn; null: nothing is pinned. */
      readonly pinned: { readonly file: string; readonly sha256: Digest } | null;
    }
  | {
      readonly kind: "shared";
      readonly group: string;
      readonly entry: string;
      readonly sha256: Digest | null;
    };

/** One plugin as configuration and manifest describe it; no process is involved. */
export interface LoadedPlugin {
  readonly name: string;
  readonly tier: TrustTier;
  readonly source: "bundled" | "user" | "workspace";
  readonly enabled: boolean;
  readonly required: boolean;
  readonly manifest: Manifest | null;
  readonly manifestDigest: Revision | null;
  /** Why the plugin cannot be used; nothing below is meaningful then. */
  readonly failure: CookieError | null;
  readonly launch: LaunchPlan | null;
  readonly claims: TierClaims;
  /** The judge of further declarations: tier, grants, and where diagnostics go. */
  readonly subject: TierSubject;
  readonly activation: "startup" | "session" | "tool";
  readonly prewarm: "run" | "stream" | "never";
  readonly restart: "on_demand" | "never";
  readonly maxInFlight: number;
  /** 0: never stopped for idleness. */
  readonly idleMs: number;
  readonly interceptionTimeoutMs: number;
  readonly startupTimeoutMs: number;
  readonly shutdownGraceMs: number;
  readonly config: JsonObject;
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string;
  /** Grows while the plugin lives, without repetitions and up to a bound. */
  readonly diagnostics: readonly string[];
}
