import type { SessionId, UsageRollup } from "@cookie-agent/sdk/protocol";
import type { SessionProducts } from "../event/consumer-folds.ts";
import type { SessionLocation, SessionStore, StoredMetadata } from "../store/session-store.ts";

/** Folds of a log that changes meanwhile before it is folded once more under its lock (S-080). */
const UNLOCKED_FOLDS = 4;

/** A session of a tree as its log has it, or as the actor that is open here has it now. */
export interface TreeMember {
  readonly location: SessionLocation;
  meta(): StoredMetadata;
  /** Of its visible branch. */
  usage(): UsageRollup;
  readonly products: SessionProducts;
}

export interface TreeLoadParts {
  readonly store: SessionStore;
  /** A member that is open here: it is never read from its log. */
  resident(sessionId: SessionId): TreeMember | undefined;
  /** Reads a log once. Rejects when it cannot be read. */
  fold(location: SessionLocation): Promise<TreeMember>;
  /** Does `work` while the session is neither opened nor closed here. */
  exclusively<T>(sessionId: SessionId, work: () => Promise<T>): Promise<T>;
}

export interface LoadedMembers {
  readonly members: ReadonlyMap<SessionId, TreeMember>;
  /** One line for each session that is left out. */
  readonly diagnostics: readonly string[];
}

/** Reads every log of a tree that is not open here, each of them once (S-077); what cannot be read is left out. */
export async function loadTree(parts: TreeLoadParts, rootId: SessionId): Promise<LoadedMembers> {
  const members = new Map<SessionId, TreeMember>();
  const diagnostics: string[] = [];
  for (const sessionId of [rootId, ...(await parts.store.children(rootId))]) {
    try {
      members.set(sessionId, await loadMember(parts, { sessionId, rootId }));
    } catch (error) {
      diagnostics.push(`session ${sessionId}: ${problemOf(error)}`);
    }
  }
  const misplaced = findMisplaced(rootId, members);
  for (const [sessionId, problem] of misplaced) {
    members.delete(sessionId);
    diagnostics.push(`session ${sessionId}: ${problem}`);
  }
  return { members, diagnostics };
}

async function loadMember(parts: TreeLoadParts, location: SessionLocation): Promise<TreeMember> {
  for (let folds = 1; folds <= UNLOCKED_FOLDS; folds += 1) {
    const resident = parts.resident(location.sessionId);
    if (resident !== undefined) return resident;
    const before = await parts.store.byteLength(location);
    const member = await parts.fold(location);
    if ((await parts.store.byteLength(location)) === before) return member;
  }
  return parts.exclusively(
    location.sessionId,
    async () => parts.resident(location.sessionId) ?? parts.fold(location),
  );
}

/** Sessions whose recorded origin contradicts where they lie; only origins make a tree (S-011, S-012). */
function findMisplaced(
  rootId: SessionId,
  members: ReadonlyMap<SessionId, TreeMember>,
): Map<SessionId, string> {
  const misplaced = new Map<SessionId, string>();
  for (const sessionId of members.keys()) {
    const problem = originProblem(rootId, sessionId, members);
    if (problem !== null) misplaced.set(sessionId, problem);
  }
  return misplaced;
}

function originProblem(
  rootId: SessionId,
  sessionId: SessionId,
  members: ReadonlyMap<SessionId, TreeMember>,
): string | null {
  const origin = members.get(sessionId)?.meta().origin;
  if (origin === undefined) return null;
  if (sessionId === rootId) {
    return origin.type === "root" ? null : "it lies where a root lies and is none";
  }
  if (origin.type === "root" || origin.root_session_id !== rootId) {
    return "its origin names another tree";
  }
  const parent = members.get(origin.parent_session_id);
  if (parent !== undefined && depthOf(parent) + 1 !== origin.depth) {
    return "its depth is not one more than that of its parent";
  }
  return null;
}

/** 0 for a root (S-012). */
function depthOf(member: TreeMember): number {
  const { origin } = member.meta();
  return origin.type === "root" ? 0 : origin.depth;
}

export function problemOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
