import type { Digest, SessionId, SessionMeta } from "@cookie-agent/sdk/protocol";
import type { StoredUsage } from "../usage/stored-usage.ts";

/** A session as its `metadata` cache shows it; who holds the tree is not stored. */
export type StoredMetadata = Omit<SessionMeta, "access"> & {
  /** Written beside it and left out when it is read for a list: only sums over many sessions want it. */
  readonly usage?: StoredUsage;
};

/** One tree refers to an artifact that lies with another one, or among the shared (S-114). */
export interface CrossReference {
  readonly digest: Digest;
  readonly from_root: SessionId;
  readonly to_root: SessionId | "shared";
  /** The event of the referring log that holds the reference, or the last one that was copied into it. */
  readonly seq: number;
}

/** Where a published session lives; only the store turns it into a place. */
export interface SessionLocation {
  readonly sessionId: SessionId;
  readonly rootId: SessionId;
}

/** The right to write inside one root tree, held until `release` or the end of the process (S-082). */
export interface TreeLease {
  readonly rootId: SessionId;
  /** False for good once released: every open log of the tree then refuses to append (S-088). */
  readonly held: boolean;
  release(): void;
}

/** One append-only log as bytes. Errors are those of the file system. */
export interface LogFile {
  /** Bytes whose writing succeeded; a failed append does not count. */
  readonly byteLength: number;
  /** The bytes from `fromByte` to the length when the reading begins, in chunks of at most 256 KiB. */
  read(fromByte?: number): AsyncIterable<Uint8Array>;
  /** Writes all of `bytes` at the end, or throws with nothing appended. */
  append(bytes: Uint8Array): Promise<void>;
  /** Waits until everything appended survives a loss of power. */
  sync(): Promise<void>;
  truncate(byteLength: number): Promise<void>;
  close(): Promise<void>;
}

export interface SessionPublication {
  readonly sessionId: SessionId;
  readonly rootId: SessionId;
  /** The whole log so far. */
  readonly bytes: Uint8Array | AsyncIterable<Uint8Array>;
  readonly metadata: StoredMetadata;
}

/** The sessions of one working directory (S 3). A fleet may keep them elsewhere: nothing above assumes files. */
export interface SessionStore {
  /** The store's folder; artifacts of its sessions lie inside. It may not exist before the first publication. */
  readonly directory: string;
  /**
   * Published roots with readable metadata; takes no lock and opens no healthy log (S-073, S-076).
   * @param everywhere Those of every other working directory too.
   */
  list(everywhere?: boolean): Promise<{ sessions: StoredMetadata[]; diagnostics: string[] }>;
  /** Every root on disk, whether it can be read or not; in the order of their ids. */
  roots(): Promise<SessionId[]>;
  find(sessionId: SessionId): Promise<SessionLocation | undefined>;
  /** One try, never waiting. The lease already held here, a new one, or undefined when it is not ours to have. */
  acquire(rootId: SessionId): Promise<TreeLease | undefined>;
  /** `foreign` also when the holder cannot be told (S 3.6). */
  access(rootId: SessionId): Promise<"owned" | "free" | "foreign">;
  /** Makes a session durable and visible in one step; when it rejects, nothing remains (S-024, S-026). */
  publish(publication: SessionPublication): Promise<{ lease: TreeLease; file: LogFile }>;
  /** With a lease the file is writable, and only as long as the lease is held. */
  open(location: SessionLocation, lease?: TreeLease): Promise<LogFile>;
  /** The lease of a tree that is held here. */
  heldLease(rootId: SessionId): TreeLease | undefined;
  /** Every session that lies below a root, however deep its origin places it; in the order of their ids. */
  children(rootId: SessionId): Promise<SessionId[]>;
  /** How long a log is on disk now; another process may be writing it. */
  byteLength(location: SessionLocation): Promise<number>;
  /** Replaces the derived cache; not durable by itself (S-071). */
  writeMetadata(metadata: StoredMetadata): Promise<void>;
  /**
   * Adds references to the ledger, durably and all at once: whoever collects artifacts sees them from then on. To be
   * called before the referring session is published (S-114).
   */
  recordCrossReferences(references: readonly CrossReference[]): Promise<void>;
  /** The references of every tree; what cannot be read is left out. */
  crossReferences(): Promise<CrossReference[]>;
  /**
   * Removes a tree that is held here, durably, and lets go of it. What other trees refer to of its artifacts stays.
   * Rejects with `storage_failed`; nothing of it is then left that looks like a session, or everything.
   */
  remove(rootId: SessionId): Promise<void>;
  /** Removes what writers that died have left, beside the trees; what lies inside one goes when it is acquired. */
  sweep(): Promise<void>;
  /** Releases every lease. */
  close(): Promise<void>;
}
