import {
  EMIT_LIMITS,
  type EmitResult,
  EventName,
  type ParamsOf,
  type PluginDiagnosticKind,
  type PluginEmit,
  type SessionId,
  utf8Length,
} from "@cookie-agent/sdk/protocol";
import { isNestedDeeper, MAX_JSON_DEPTH } from "../support/json-depth.ts";
import { cutUtf8 } from "../support/safe-text.ts";
import type { ContextGrants } from "./context-grants.ts";
import type { EmitQuota } from "./emit-quota.ts";
import type { EmitTokens } from "./emit-tokens.ts";
import type { EventClaims } from "./event-claims.ts";
import type { EventServices } from "./event-services.ts";

type Emission = ParamsOf<typeof PluginEmit>;

export interface PublisherOptions {
  readonly plugin: string;
  readonly claims: EventClaims;
  readonly grants: ContextGrants;
  readonly tokens: EmitTokens;
  readonly quota: EmitQuota;
  readonly services: EventServices;
}

/** Why an emission goes nowhere. */
interface Refusal {
  /** Whether the bus says `dropped`, for too much, or `rejected`, for what must not be. */
  readonly bus: "dropped" | "rejected";
  readonly reason: string;
  /** Where it is noted; never in a session that only the plugin named (E-149). */
  readonly noted?: { readonly sessionId: SessionId; readonly kind: PluginDiagnosticKind };
}

/** Carries one emission of a plugin to the bus and into the log, as far as it may (E-146…E-151). Never rejects. */
export async function publish(emission: Emission, options: PublisherOptions): Promise<EmitResult> {
  const { plugin, claims, services } = options;
  const name = cutUtf8(emission.name, 512);
  const refusal = judge(emission, options);
  if (refusal !== undefined) {
    const { bus, reason, noted } = refusal;
    if (noted !== undefined) services.note(noted.sessionId, plugin, noted.kind, reason);
    return { name, bus, durable: "rejected", reason };
  }
  const { session_id: sessionId, payload } = emission;
  if (claims.publishBus) services.bus.published({ sessionId, plugin, name, payload });
  const bus = claims.publishBus ? "published" : "rejected";
  if (!claims.publishSessionEvents) return { name, bus, durable: "rejected" };
  try {
    await services.append(sessionId, { type: "plugin_event_added", plugin, name, payload });
    return { name, bus, durable: "published" };
  } catch {
    const reason = "the session cannot be written now";
    return { name, bus, durable: "rejected", reason };
  }
}

function judge(emission: Emission, options: PublisherOptions): Refusal | undefined {
  const { claims, tokens, grants, quota } = options;
  const { session_id: named, context_id: contextId } = emission;
  const token = tokens.redeem(contextId);
  const sessionId = token.state === "unknown" ? grants.sessionOf(contextId) : token.sessionId;
  if (sessionId === undefined) {
    return {
      bus: "rejected",
      reason: "the context is unknown; use one of a delivery or a request",
    };
  }
  const refuse = (
    kind: PluginDiagnosticKind,
    reason: string,
    bus: Refusal["bus"] = "dropped",
  ): Refusal => ({ bus, reason, noted: { sessionId, kind } });
  if (!claims.publishBus && !claims.publishSessionEvents) {
    const reason = "the manifest declares neither publish_bus nor publish_session_events";
    return refuse("unsupported_capability", reason, "rejected");
  }
  if (token.state !== "good") {
    const reason =
      "the context is spent or expired; each serves one plugin/emit, soon after its delivery";
    return refuse("context_mismatch", reason, "rejected");
  }
  if (named !== sessionId) {
    const reason = "the context belongs to another session";
    return refuse("context_mismatch", reason, "rejected");
  }
  const tooLarge = problemOf(emission);
  if (tooLarge !== undefined) return refuse("oversized_event", tooLarge);
  if (!quota.take(sessionId, sizeOf(emission))) {
    return refuse("rate_limited", "too many events, or too much in them, for one session");
  }
  return undefined;
}

function problemOf(emission: Emission): string | undefined {
  const { nameCharacters, payloadBytes, eventBytes } = EMIT_LIMITS;
  if (!EventName.safeParse(emission.name).success) {
    return `the name must be 1 to ${nameCharacters} characters without controls`;
  }
  if (isNestedDeeper(emission, MAX_JSON_DEPTH)) return "the payload is nested too deeply";
  if (utf8Length(JSON.stringify(emission.payload)) > payloadBytes) {
    return `the payload is larger than ${payloadBytes} bytes`;
  }
  if (sizeOf(emission) > eventBytes) return `the whole event is larger than ${eventBytes} bytes`;
  return undefined;
}

function sizeOf(emission: Emission): number {
  return utf8Length(JSON.stringify(emission));
}
