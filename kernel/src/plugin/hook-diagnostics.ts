import type { PluginDiagnosticKind, SessionId } from "@cookie-agent/sdk/protocol";

/** Where a chain of hooks tells what it skipped and what stopped it; filled in by the composition root. */
export interface HookDiagnostics {
  /** Returns at once; `message` is one line. */
  note(sessionId: SessionId, plugin: string, kind: PluginDiagnosticKind, message: string): void;
}
