import type { SessionId, SkippedEvent, StoredEvent } from "@cookie-agent/sdk/protocol";
import { VisibleBranch } from "@cookie-agent/sdk/protocol";
import { type LogEnd, type LoggedEvent, readLog } from "./read-log.ts";

/** What the events of a log are folded into. */
export interface LogFold {
  /** Each event once, hidden ones too. */
  place?(logged: LoggedEvent): void;
  /** Each event that counts, in order. */
  apply(event: StoredEvent): void;
  /** Forgets what was applied: all that counts follows anew. */
  restart(): void;
  skip?(skipped: SkippedEvent): void;
}

export interface FoldedLog {
  readonly branch: VisibleBranch;
  readonly end: LogEnd;
}

/**
 * Folds the visible branch of a log (S-061). A log without reverts is read once; one with reverts twice, because an
 * event does not know what a later one hides.
 */
export async function foldLog(
  read: () => AsyncIterable<Uint8Array>,
  sessionId: SessionId,
  fold: LogFold,
): Promise<FoldedLog> {
  const branch = new VisibleBranch();
  let end: LogEnd | undefined;
  for await (const batch of readLog(read(), sessionId)) {
    for (const item of batch) {
      if (item.kind === "event") {
        const { event } = item;
        fold.place?.(item);
        const { payload } = event;
        if (payload.type === "session_reverted") branch.revert(payload.through_seq, event.seq);
        else if (branch.isWhole) fold.apply(event);
      } else if (item.kind === "skipped") {
        fold.skip?.(item.skipped);
      } else {
        end = item;
      }
    }
  }
  if (end === undefined) throw new Error("the log has no end");
  const endSeq = end.nextSeq - 1;
  if (!branch.isWhole) await foldBranch(read, sessionId, { branch, endSeq }, fold);
  return { branch, end };
}

/** Folds a log again whose branch is known. */
export async function foldBranch(
  read: () => AsyncIterable<Uint8Array>,
  sessionId: SessionId,
  { branch, endSeq }: { readonly branch: VisibleBranch; readonly endSeq: number },
  fold: Pick<LogFold, "apply" | "restart">,
): Promise<void> {
  fold.restart();
  for await (const batch of readLog(read(), sessionId)) {
    for (const item of batch) {
      if (item.kind !== "event" || item.event.seq > endSeq) continue;
      if (branch.isVisible(item.event.seq)) fold.apply(item.event);
    }
  }
}
