import {
  CookieError,
  type Digest,
  type EventPayload,
  type SessionId,
  type SessionMeta,
} from "@cookie-agent/sdk/protocol";
import type { ArtifactStore } from "../artifact/artifact-store.ts";
import { findDigests } from "../artifact/find-digests.ts";
import { copyLog } from "../event/copy-log.ts";
import { type EncodedEvent, encodeEvents, joinLines } from "../event/encode-event.ts";
import { EventStamper } from "../event/event-stamper.ts";
import { foldLog } from "../event/fold-log.ts";
import { SkippedEvents } from "../event/skipped-events.ts";
import { storageFailed } from "../event/storage-failed.ts";
import type { SessionStore } from "../store/session-store.ts";
import { createId } from "../support/create-id.ts";
import { createHandle } from "./create-handle.ts";
import { describeSession } from "./describe-session.ts";
import { forkTitle } from "./rename-session.ts";
import { SessionState } from "./session-state.ts";

interface ForkParts {
  readonly store: SessionStore;
  readonly artifacts: Pick<ArtifactStore, "locate">;
  /** Of the source's tree, when the fork joins it. */
  readonly takenHandles?: ReadonlySet<string>;
}

/**
 * Publishes a session with another one's log up to an event (S-230). The fork of a root is the root of a tree of its
 * own; that of a delegated session stands beside it, which needs its tree's lock (S-231). Nothing is written to the
 * source. Rejects with `invalid_sequence` when nothing has been said by then.
 */
export async function forkSession(
  source: Pick<SessionMeta, "session_id" | "origin" | "creation_selection" | "handle">,
  throughSeq: number,
  { store, artifacts, takenHandles }: ForkParts,
): Promise<SessionId> {
  const { session_id: sourceId, origin, creation_selection: creation, handle } = source;
  const sessionId = createId<SessionId>();
  const shortId = handle === undefined ? null : createHandle(creation.agent, takenHandles);
  const sourceRoot = origin.type === "root" ? sourceId : origin.root_session_id;
  const log = await store.open({ sessionId: sourceId, rootId: sourceRoot });
  try {
    const copied = () => copyLog(log.read(), { sessionId, shortId, throughSeq });
    const { metadata, ending } = await foldFork(copied, sessionId, throughSeq);
    const rootId = origin.type === "root" ? sessionId : sourceRoot;
    const digests = new Set<Digest>();
    for await (const digest of findDigests(copied())) digests.add(digest);
    const places = [...(await artifacts.locate(sourceRoot, digests))];
    // Before the fork is there, so that nobody collects what it refers to (S-114).
    await store.recordCrossReferences(
      places
        .filter(([, place]) => place !== rootId)
        .map(([digest, to_root]) => ({ digest, from_root: rootId, to_root, seq: throughSeq })),
    );
    const { file } = await store.publish({
      sessionId,
      rootId,
      bytes: withEnding(copied(), ending),
      metadata,
    });
    await file.close();
    return sessionId;
  } catch (error) {
    throw storageFailed(sourceId, error);
  } finally {
    await log.close();
  }
}

/** What the copied events amount to, and the two that close the fork: where it was taken, and its title. */
async function foldFork(
  read: () => AsyncIterable<Uint8Array>,
  sessionId: SessionId,
  throughSeq: number,
): Promise<{ metadata: SessionMeta; ending: readonly EncodedEvent[] }> {
  const state = new SessionState();
  const stamper = new EventStamper(sessionId);
  const skipped = new SkippedEvents();
  const { end } = await foldLog(read, sessionId, {
    place: ({ event }) => stamper.fold(event),
    apply: (event) => state.apply(event),
    restart: () => state.restart(),
    skip: (event) => skipped.add(event),
  });
  const { title, inputThroughSeq } = state;
  if (inputThroughSeq === 0) {
    throw new CookieError("invalid_sequence", `nothing was said up to event ${throughSeq}`);
  }
  const client_rename_id = `fork-${sessionId}`;
  const payloads: EventPayload[] = [
    // It also ends a run that was under way there.
    { type: "session_reverted", through_seq: throughSeq },
    {
      type: "session_title_committed",
      change: { kind: "user_set", title: forkTitle(title), client_rename_id },
      input_through_seq: inputThroughSeq,
    },
  ];
  const drafts = payloads.map((payload) => ({ payload, runId: null }));
  const ending = encodeEvents(stamper.stamp(drafts, throughSeq + 1), end.context);
  for (const { event } of ending) state.apply(event);
  return { metadata: describeSession(sessionId, state, skipped.list), ending };
}

async function* withEnding(
  copied: AsyncIterable<Uint8Array>,
  ending: readonly EncodedEvent[],
): AsyncGenerator<Uint8Array> {
  yield* copied;
  yield joinLines(ending);
}
