export { CookieError as ToolError } from "../protocol/errors.ts";
export { createManifest } from "./create-manifest.ts";
export {
  definePlugin,
  type Plugin,
  type PluginContext,
  type PluginDefinition,
} from "./define-plugin.ts";
export {
  type ArgumentsOf,
  type DynamicPrepare,
  defineTool,
  type StaticPrepare,
  type ToolDefinition,
  type ToolParameters,
} from "./define-tool.ts";
export type { Emit, EmitOutcome } from "./emit.ts";
export type {
  EventContext,
  EventDefinition,
  EventHandler,
  EventHandlers,
  HeardBusEvent,
  HeardEvent,
  HeardEventType,
} from "./event-handlers.ts";
export type { HookContext, HookHandler, HookHandlers } from "./hook-handlers.ts";
export type { ArtifactPage, HostClient, LogLevel } from "./host-client.ts";
export type { ServiceHandlers, ServiceInvocation } from "./plugin-services.ts";
export type { PreparedCall, PrepareRequest } from "./prepared-call.ts";
export type { AttachmentFile } from "./save-attachment.ts";
export { serve, servePlugin } from "./serve.ts";
export type { MediaContent, ServiceClient } from "./service-client.ts";
export type {
  OutputBytes,
  OutputChunk,
  ProgressDelta,
  ToolAnswer,
  ToolAnswerOptions,
  ToolInvocation,
} from "./tool-invocation.ts";
export type { SetToolsOptions, ToolListOutcome, ToolTable } from "./tool-table.ts";
