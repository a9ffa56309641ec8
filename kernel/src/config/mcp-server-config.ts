import type { Secret } from "./secret.ts";

export interface McpOauth {
  readonly clientId?: string;
  readonly clientSecret?: Secret;
  readonly clientMetadataUrl?: string;
  readonly scopes: readonly string[];
}

export type McpTransport =
  | {
      readonly kind: "stdio";
      readonly command: string;
      readonly args: readonly string[];
      readonly env: Readonly<Record<string, string>>;
      readonly cwd?: string;
    }
  | {
      readonly kind: "http";
      readonly url: string;
      readonly headers: Readonly<Record<string, string>>;
      /** `auto` reacts to a challenge, `off` never does. */
      readonly oauth: "auto" | "off" | McpOauth;
    };

/** One `[mcp.servers.<name>]` table (C 6.1). */
export interface McpServerConfig {
  readonly name: string;
  readonly source: "user_file" | "workspace_file";
  readonly transport: McpTransport;
  readonly enabled: boolean;
  readonly lazy: boolean;
  readonly timeoutMs: number;
}
