import type { EventPayloadOf, PluginDiagnosticKind, SessionId } from "@cookie-agent/sdk/protocol";
import type { PluginBus } from "../event/plugin-bus.ts";

/** What events and publications of plugins need of the rooms around them; filled in by the composition root. */
export interface EventServices {
  readonly bus: PluginBus;
  /** Records a publication in its session; rejects when the session cannot be written. */
  append(sessionId: SessionId, payload: EventPayloadOf<"plugin_event_added">): Promise<void>;
  /**
   * Counts what went wrong with a plugin in a session: immediate, never fails. `message` is one line for people, at
   * most 200 characters are kept.
   */
  note(sessionId: SessionId, plugin: string, kind: PluginDiagnosticKind, message: string): void;
}
