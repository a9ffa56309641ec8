import type { SessionId, SessionOrigin } from "@cookie-agent/sdk/protocol";
import type { StoredUsage } from "../usage/stored-usage.ts";
import type { LogFile } from "./session-store.ts";

/** A published session as it lies in its store; nothing is locked and no log is open. */
export interface ArchivedSession {
  readonly sessionId: SessionId;
  readonly rootId: SessionId;
  /** Null when the cache does not say: its log does. */
  readonly origin: SessionOrigin | null;
  /** Null when there is no cache, or one of an earlier length of the log: only the log has it then. */
  readonly usage: StoredUsage | null;
  /** To be closed by the caller. */
  openLog(): Promise<LogFile>;
}

/** The sessions of this work directory's store, or of every store beside it. */
export type ArchiveScope = "directory" | "everything";

/** Stored sessions for whoever sums them up, children too (S 13). */
export interface UsageArchive {
  /**
   * Every tree, its root first where that is readable.
   * @param onDiagnostic Told of what cannot be read and is left out.
   */
  trees(
    scope: ArchiveScope,
    onDiagnostic: (text: string) => void,
  ): AsyncIterable<readonly ArchivedSession[]>;
  /** The sessions of one tree of this directory; none when it is not published. */
  tree(rootId: SessionId, onProblem: (error: unknown) => void): Promise<ArchivedSession[]>;
}
