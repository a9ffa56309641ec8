import type { Config, WebfetchConfig } from "./config.ts";
import type { DecodedLayer } from "./config-layer.ts";
import { tightestBudget } from "./decode-budget.ts";
import { defaultSetting, type Settings } from "./decode-settings.ts";

/** Workspace over user: whole tables and whole entries, never single fields (C-019, C-020). */
export function mergeLayers(user?: DecodedLayer, workspace?: DecodedLayer): Config {
  const pick = <K extends keyof Settings>(name: K): Settings[K] =>
    workspace?.settings[name] ?? user?.settings[name] ?? defaultSetting(name);
  const none: Settings["budget"] = {};
  return {
    server: pick("server"),
    toolOutput: pick("toolOutput"),
    approval: pick("approval"),
    contextCompaction: pick("contextCompaction"),
    promptCaching: pick("promptCaching"),
    sessionTitle: pick("sessionTitle"),
    delegation: pick("delegation"),
    messaging: pick("messaging"),
    modelRetry: pick("modelRetry"),
    pricing: pick("pricing"),
    tools: pick("tools"),
    context: pick("context"),
    budget: tightestBudget(user?.settings.budget ?? none, workspace?.settings.budget ?? none),
    webfetch: strictestWebfetch(user?.settings.webfetch, workspace?.settings.webfetch),
    providers: mergeEntries(user?.providers, workspace?.providers),
    mcp: { servers: mergeEntries(user?.mcpServers, workspace?.mcpServers) },
    plugins: [...mergeEntries(user?.plugins, workspace?.plugins).values()],
  };
}

/** A replaced entry keeps its place, a new one goes to the end (C-021). */
function mergeEntries<T>(
  user: ReadonlyMap<string, T> = new Map(),
  workspace: ReadonlyMap<string, T> = new Map(),
): Map<string, T> {
  const merged = new Map(user);
  for (const [name, entry] of workspace) merged.set(name, entry);
  return merged;
}

const STRICTNESS = ["allow", "ask", "deny"] as const;

function strictestWebfetch(user?: WebfetchConfig, workspace?: WebfetchConfig): WebfetchConfig {
  const fallback = defaultSetting("webfetch");
  const [a, b] = [user ?? fallback, workspace ?? fallback];
  const rank = ({ privateAddresses }: WebfetchConfig) => STRICTNESS.indexOf(privateAddresses);
  return rank(b) > rank(a) ? b : a;
}
