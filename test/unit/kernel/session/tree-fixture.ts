import type {
  ClientKey,
  EventPayloadOf,
  RunSelection,
  SessionId,
  SessionOrigin,
} from "@cookie-agent/sdk/protocol";
import { encodeEvents, joinLines } from "../../../../kernel/src/event/encode-event.ts";
import type { EventDraft } from "../../../../kernel/src/event/event-draft.ts";
import { FIRST_LINE } from "../../../../kernel/src/event/line-context.ts";
import type { SessionActor } from "../../../../kernel/src/session/session-actor.ts";
import type { SessionStore } from "../../../../kernel/src/store/session-store.ts";
import { createId } from "../../../../kernel/src/support/create-id.ts";
import { eventsOf, metadataOf, sessionCreated } from "../event/event-fixtures.ts";
import { OFFLINE } from "./session-fixture.ts";

export interface StoredChild {
  readonly rootId: SessionId;
  readonly parentId?: SessionId;
  readonly depth?: number;
  readonly sessionId?: SessionId;
  readonly handle?: string;
  /** What its log holds after its beginning. */
  readonly drafts?: readonly EventDraft[];
  /** Instead of the origin that the other members say. */
  readonly origin?: SessionOrigin;
}

/** Writes a session into a tree as delegation does: with the store's own publication. */
export async function publishChild(store: SessionStore, child: StoredChild): Promise<SessionId> {
  const { rootId, parentId = rootId, depth = 1, sessionId = createId<SessionId>() } = child;
  const origin: SessionOrigin = child.origin ?? {
    type: "delegated",
    root_session_id: rootId,
    parent_session_id: parentId,
    parent_run_id: createId(),
    parent_tool_call_id: createId(),
    invocation_id: "invocation",
    depth,
  };
  const created = sessionCreated().payload as EventPayloadOf<"session_created">;
  const first = {
    runId: null,
    payload: { ...created, origin, ...(child.handle && { short_id: child.handle }) },
  };
  const events = eventsOf(sessionId, [first, ...(child.drafts ?? [])]);
  const metadata = { ...metadataOf(sessionId), origin, last_event_seq: events.length };
  const bytes = joinLines(encodeEvents(events, FIRST_LINE));
  const { file } = await store.publish({ sessionId, rootId, bytes, metadata });
  await file.close();
  return sessionId;
}

/** Runs the offline model once and waits for the end. */
export async function runToEnd(actor: SessionActor): Promise<void> {
  const { tail } = await actor.subscribe({ cursor: actor.meta().last_event_seq });
  await actor.startRun({
    clientRunId: createId() as unknown as ClientKey,
    selection: OFFLINE as unknown as RunSelection,
    input: "say hello",
    maxTurns: null,
  });
  for await (const item of tail ?? []) {
    if ("payload" in item && item.payload.type === "run_completed") return;
  }
}
