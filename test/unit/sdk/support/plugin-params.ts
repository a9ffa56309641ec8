import type {
  ParamsInput,
  PluginInitialize,
  ToolsCall,
  ToolsPrepare,
} from "@cookie-agent/sdk/protocol";

export const ID = "0198c0de-0000-7000-8000-000000000001" as const;

type Loose<T> = { [K in keyof T]?: unknown };

export function initializeParams(
  over: Loose<ParamsInput<typeof PluginInitialize>> = {},
): ParamsInput<typeof PluginInitialize> {
  return {
    protocol_version: "0.1.0",
    engine_version: "2.3.0",
    plugin: { name: "echo", tier: "trusted", manifest_digest: null },
    capabilities: {
      ping: true,
      shutdown: true,
      tools: true,
      event_streaming: true,
      event_publishing: true,
      interception: true,
      prepare: true,
      progress: true,
      dynamic_tools: false,
      services: [],
    },
    config: {},
    paths: { workspace: "/w", data: "/d", scratch: "/s" },
    limits: { frame_bytes: 4194304, progress_window_bytes: 1048576 },
    ...over,
  } as ParamsInput<typeof PluginInitialize>;
}

export function prepareParams(
  tool: string,
  args: Record<string, unknown>,
): ParamsInput<typeof ToolsPrepare> {
  return {
    tool,
    session_id: ID,
    run_id: ID,
    context_id: "c-1",
    invocation_id: ID,
    arguments: args,
    cwd: "/w",
    workspace_root: "/w",
  } as ParamsInput<typeof ToolsPrepare>;
}

export function callParams(
  tool: string,
  args: Record<string, unknown>,
  over: Loose<ParamsInput<typeof ToolsCall>> = {},
): ParamsInput<typeof ToolsCall> {
  return {
    ...prepareParams(tool, args),
    resource: null,
    prepared: null,
    stdin: false,
    limits: { max_lines: 2000, max_bytes: 51200 },
    ...over,
  } as ParamsInput<typeof ToolsCall>;
}
