import type { Digest, SessionId } from "@cookie-agent/sdk/protocol";

/** What a finished artifact is; lines are newlines, plus one for a last line without one (T 3.2). */
export interface StoredArtifact {
  readonly sha256: Digest;
  readonly byteLength: number;
  readonly lineCount: number;
}

/**
 * One channel of output on its way into the store. The owner ends it with `publish` or `discard`, whatever
 * happened before.
 */
export interface CaptureFile {
  readonly byteLength: number;
  /** Appends all of `parts` or, when it rejects with `execution_failed`, none of them. */
  append(...parts: readonly Uint8Array[]): Promise<void>;
  /** Ends appending; the digest is known before anything is published. */
  seal(): StoredArtifact;
  /** Makes the sealed content durable under its digest and ends the capture. Rejects with `execution_failed`. */
  publish(): Promise<void>;
  /** Drops the temporary; harmless after `publish`. */
  discard(): void;
}

/** A verified artifact, open for reading; the caller closes it. */
export interface OpenedArtifact {
  readonly byteLength: number;
  readonly lineCount: number;
  /** At most `length` bytes from `position`; fewer only at the end. */
  read(position: number, length: number): Promise<Uint8Array>;
  close(): Promise<void>;
}

/** With a tree, or among what belongs to none. */
export type ArtifactPlace = SessionId | "shared";

/**
 * Content by digest. What belongs to a root session stands with that root; possession of a digest gives access
 * within the project (S 4.1, 4.2).
 */
export interface ArtifactStore {
  /** Starts a capture for the tree of `rootId`; `channel` only tells temporaries of one call apart. */
  beginCapture(rootId: SessionId, channel?: number): Promise<CaptureFile>;
  /** Stores `bytes`; equal content is stored once and made young again (T-146). */
  put(rootId: SessionId, bytes: Uint8Array): Promise<StoredArtifact>;
  /**
   * Makes the names of what was published for the tree so far durable, as their content is already; to be awaited before
   * a log refers to them (S-104). Rejects with the system's error.
   */
  syncNames(rootId: SessionId): Promise<void>;
  /**
   * Finds an artifact in the caller's tree, among the shared ones, then in the other trees of the project. Content
   * is checked against its digest when this process first reads it. Rejects with `artifact_missing` or
   * `artifact_corrupt`.
   */
  open(rootId: SessionId, sha256: Digest): Promise<OpenedArtifact>;
  /** Where artifacts of these digests lie: with which tree, or among the shared. Those that are nowhere are left out. */
  locate(rootId: SessionId, digests: ReadonlySet<Digest>): Promise<Map<Digest, ArtifactPlace>>;
  /**
   * Removes artifacts that nothing refers to and that are older than an hour. What this process has published there
   * is left out until `release` (S-112).
   * @param mentioned Which of these are referred to by logs and ledger; a rejection leaves everything as it is.
   */
  collect(
    place: ArtifactPlace,
    mentioned: (candidates: ReadonlySet<Digest>) => Promise<ReadonlySet<Digest>>,
  ): Promise<readonly Digest[]>;
  /** What was published there so far is named in logs by now, or never will be. */
  release(place: ArtifactPlace): void;
  /** Removes temporaries that are older than an hour and whose writer is gone (T-149). */
  sweepTemporaries(): Promise<void>;
}
