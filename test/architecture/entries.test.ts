import { readFileSync } from "node:fs";
import { expect, test } from "vitest";

/** What each entry exports; a change here is a change of what outsiders build on. */
const EXPORTS = {
  "sdk/src/protocol/index.ts": `
  AdditionalMessage, AgentId, AgentSnapshot, AgentUsage, ApprovalDecision, ApprovalId, ApprovalList,
  ApprovalRecord, ApprovalRequest, ApprovalRespond, ApprovalStatus, ArtifactReference,
  ArtifactsRead, ArtifactsWrite, AssistantPart, AttemptId, AvailabilityPredicate,
  CLIENT_PROTOCOL_VERSION, Capabilities, ChildSummary, ClientKey, Concurrency, ConfigGet, ContextId,
  CookieError, Count, DYNAMIC_TOOL_LIMITS, Day, DecisionReason, DecisionSource, DelegationCancel,
  DelegationResult, DelegationStart, DelegationTargets, Digest, EMIT_LIMITS, ERROR_NUMBERS,
  EVENT_PAYLOADS, EffectivePermission, EmitResult, Empty, EventEnvelope, EventName, EventValue,
  EventsPlugin, EventsSubscribe, EventsSubscription, ExplainedLabel, ExplainedResource, FinishReason, GoalsGet, GoalsUpdate, HOOKS,
  HOOK_LIMITS, Handshake, HookMessage, HookName, HookPart, HookRequest, HostGrant, HostLog,
  InjectedMessage, InternalAgentFailure, InternalAgentInvocationId, InternalAgentKind,
  InternalAgentRunId, JsonObject, LabelResolver, MAX_FRAME_BYTES, MAX_INLINE_ARTIFACT_BYTES,
  MAX_MANIFEST_BYTES, MAX_SCRATCH_IMPORT_BYTES, Manifest, MediaDeliver, MediaKind, MediaPlacement,
  MediaSniff, MessagesSend, ModelErrorKind, ModelErrorSummary, ModelKey, ModelSelection, ModelTurn,
  OperationCapability, OperationResource, OutputDeclaration, OverlayRule, PLUGIN_PROTOCOL_VERSION,
  PROGRESS_LIMITS, PROGRESS_WINDOW_BYTES, PermissionAction, PermissionAsk, PermissionEffect,
  PermissionEvaluation, PermissionExplanation, PermissionMode, PermissionRule, PluginBusEvent, PluginDiagnosticKind,
  PluginEmit, PluginEmitNotice, PluginEmitResult, PluginEvent, PluginInitialize, PluginName,
  PluginPing, PluginRuntime, PluginShutdown, PluginState, PluginStatus, PluginsReload,
  PluginsRestart, PluginsStatus, PrepareDeclaration, PreparedResource, ProcessAttach, ProcessDetach,
  ProviderId, ProviderModelId, RUNLESS_EVENTS, ReasoningPart, RehydratedFile, ReplayDisposition,
  ResolvedModel, ResourceBoundary, ResourceLifetime, ResourceSource, RetainedOutput, RetainedStream,
  Revision, Revisions, RuleCandidate, RuleSource, RunCancel, RunError, RunId, RunRecallSteer, RunSelection,
  RunStart, RunSteer, RunToolStdin, RuntimeChanged, RuntimeSnapshot, RuntimeSnapshotGet, SERVICE_GRANTS,
  STREAM_EVENTS, SafeCode, ScratchName, Semver, ServiceCall, SessionChildren, SessionCompact,
  SessionCreate, SessionFork, SessionGet, SessionId, SessionInfo, SessionList, SessionMeta,
  SessionOrigin, SessionPermissionClear, SessionPermissionExplain, SessionPermissionGet, SessionPermissionSet, SessionRemove,
  SessionRename, SessionResume, SessionRevert, SessionSetPermissionMode, SessionStatus, SessionTree,
  SessionTreeNode, SessionTreeUsage, SessionUsage, SkillDescriptor, SkillsCommit, SkillsGet,
  SkillsList, SkippedEvent, SnakeName, StaticResource, StreamName, TextPart, Timestamp, TitleChange,
  TitleRequest, ToolAttachment, ToolCallError, ToolCallId, ToolCallOwner, ToolCallPart,
  ToolCallResult, ToolClaim, ToolDeclaration, ToolEntry, ToolName, ToolOutcome, ToolOutputDelta,
  ToolOutputGap, ToolOutputSnapshot, ToolPresentation, ToolResult, ToolsCall, ToolsDiscard,
  ToolsListChanged, ToolsPrepare, ToolsProgress, ToolsProgressAck, ToolsResolve, ToolsRevalidate,
  ToolsStdin, TreeApprovalGrant, TreeApprovalGrantId, TrustTier, Usage, UsageGlobal, UsageRollup,
  UsageSum, UsageTotals, UserDecision, VariantId, VisibleBranch, WildcardPattern, addCounters,
  boundedText, checkValue, controlFreeText, countersOf, emptyCounters, findDeclarationProblem, fromPlugin,
  grantOf, isCookieError, isErrorCode, notification, request, toPlugin, toTotals, type AgentEntry, type Checked,
  type CookieErrorOptions, type DeclarationProblem, type ErrorCode, type EventPayload,
  type EventPayloadOf, type EventType, type HookParams, type HookResult, type Method,
  type ModelEntry, type Notification, type ParamsInput, type ParamsOf, type ResultInput,
  type ResultOf, type StoredEvent, type ToolProgress, type UsageCounters, type UsageRecord,
  type ValueProblem, utf8Length
`,
  "sdk/src/rpc/index.ts": `
  Connection, SecretText, createLineTransport, createMemoryPair, cutText, fromWireError, toWireError,
  type BadLine, type CloseReason, type ConnectionOptions, type FrameFlow, type LineTransport,
  type LineTransportOptions, type RequestOptions, type Transport, type WireError
`,
  "sdk/src/plugin/index.ts": `
  ToolError, createManifest, definePlugin, defineTool, serve, servePlugin, type ArgumentsOf,
  type ArtifactPage, type AttachmentFile, type DynamicPrepare, type Emit, type EmitOutcome,
  type EventContext, type EventDefinition, type EventHandler, type EventHandlers,
  type HeardBusEvent, type HeardEvent, type HeardEventType, type HookContext, type HookHandler,
  type HookHandlers, type HostClient, type LogLevel, type MediaContent, type OutputBytes,
  type OutputChunk, type Plugin, type PluginContext, type PluginDefinition, type PrepareRequest,
  type PreparedCall, type ProgressDelta, type ServiceClient, type ServiceHandlers,
  type ServiceInvocation, type SetToolsOptions, type StaticPrepare, type ToolAnswer,
  type ToolAnswerOptions, type ToolDefinition, type ToolInvocation, type ToolListOutcome,
  type ToolParameters, type ToolTable
`,
  "sdk/src/testing/index.ts": `
  ConformanceSamples, runConformance, testPlugin, type ConformanceLimits, type ConformanceOptions,
  type ConformanceReport, type ConformanceResult, type ConformanceTarget, type FakeService,
  type FakeServices, type HarnessCall, type HarnessOptions, type HarnessResult, type PluginHarness,
  type ProgressNote
`,
  "sdk/src/client/index.ts": `
  CookieClient, connectDaemon, type ConnectDaemonOptions, type ConnectionState, type SessionNews,
  type SubscribeOptions
`,
  "kernel/src/index.ts": `
  ConfigError, grantTrust, inspectContents, inspectPlugin, inspectSetup, listTrust, openKernel,
  planPluginTrust, probeFileLock, reviewWorkspace, revokeTrust, type Kernel, type LogLevel,
  type Logger, type OpenKernelOptions, type PluginInspection, type PluginProblem,
  type PluginTrustPlan, type SetupReport, type TriedPlugin, type WorkspaceContents,
  type WorkspaceReview
`,
};

test.for(Object.entries(EXPORTS))("%s exports exactly the pinned names", ([file, names]) => {
  expect(exportedNames(file)).toEqual(names.split(",").map((name) => name.trim()));
});

/** An entry consists of named re-exports and nothing else. */
function exportedNames(file: string): string[] {
  const text = readFileSync(new URL(`../../${file}`, import.meta.url), "utf8");
  const names: string[] = [];
  const rest = text.replace(
    /export (type )?\{([^}]*)\} from "[^"]+";/g,
    (_, type: string | undefined, list: string) => {
      for (const entry of list.split(",").map((name) => name.trim())) {
        if (entry === "") continue;
        const isType = type !== undefined || entry.startsWith("type ");
        const name = entry.replace(/^type /, "").replace(/^.* as /, "");
        names.push(isType ? `type ${name}` : name);
      }
      return "";
    },
  );
  expect(rest.trim()).toBe("");
  return names.sort();
}
