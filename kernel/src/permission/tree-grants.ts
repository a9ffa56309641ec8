import {
  type ApprovalRequest,
  CookieError,
  type PermissionAction,
  type SessionId,
  type TreeApprovalGrant,
  type TreeApprovalGrantId,
} from "@cookie-agent/sdk/protocol";
import type { GrantJournal } from "../store/grant-journal.ts";
import { canonicalJson } from "../support/canonical-json.ts";
import { createId } from "../support/create-id.ts";
import { Mailbox } from "../support/mailbox.ts";
import type { SessionGrants } from "./session-grants.ts";

/** Answers that one tree may remember at a time. */
const MAX_LIVE_GRANTS = 1024;

/** Where the grants of a tree come from that no open session of it holds. */
export interface TreeGrantSources {
  readonly journal: Pick<GrantJournal, "invalidatedIn" | "append">;
  /** The folds of the tree's sessions, of those that are open here too. */
  readAll(): Promise<ReadonlyMap<SessionId, SessionGrants>>;
  /** Told why the grants of the tree cannot be used for now. */
  onProblem(error: unknown): void;
}

/**
 * What people have granted to one tree of sessions (S 6.10): the grants in the logs of its sessions, without those
 * that a tightening of the rules has taken back.
 */
export class TreeGrants {
  readonly rootSessionId: SessionId;
  readonly #sources: TreeGrantSources;
  readonly #members = new Map<SessionId, SessionGrants>();
  readonly #invalidated = new Set<TreeApprovalGrantId>();
  /** Grants are given and rules are changed one at a time, so that no grant slips past a tightening. */
  readonly #changes = new Mailbox();
  #loaded: boolean;
  #growth = 0;
  #loading: Promise<void> | undefined;

  /** @param isNew True for a tree that began in this process, of which nothing can be on disk. */
  constructor(rootSessionId: SessionId, sources: TreeGrantSources, isNew: boolean) {
    this.rootSessionId = rootSessionId;
    this.#sources = sources;
    this.#loaded = isNew;
  }

  /** Takes in the fold of a session that is open here, in place of what was read of it before. */
  join(sessionId: SessionId, own: SessionGrants): void {
    this.#members.set(sessionId, own);
  }

  /** Another session of the tree came to be on disk. */
  grew(): void {
    this.#growth += 1;
    this.#loaded = false;
  }

  /** Does something in which grants are given, taken back or read anew, while nothing else does. */
  exclusively<T>(act: () => Promise<T>): Promise<T> {
    return this.#changes.run(act);
  }

  /** False until what other sessions hold is known. */
  get loaded(): boolean {
    return this.#loaded;
  }

  /** Reads what is not known yet; tried again by the next call when it fails. */
  load(): Promise<void> {
    if (this.#loaded) return Promise.resolve();
    this.#loading ??= this.#load().finally(() => {
      this.#loading = undefined;
    });
    return this.#loading;
  }

  /** The same for whoever can do without: false when the grants cannot be used for now. */
  async ready(): Promise<boolean> {
    try {
      await this.load();
      return true;
    } catch (error) {
      this.#sources.onProblem(error);
      return false;
    }
  }

  /** In force now, oldest first. Complete only once loaded. */
  live(): TreeApprovalGrant[] {
    const live = new Map<TreeApprovalGrantId, TreeApprovalGrant>();
    for (const member of this.#members.values()) {
      for (const grant of member.all()) {
        const isOurs = grant.root_session_id === this.rootSessionId;
        if (isOurs && !this.#invalidated.has(grant.grant_id)) live.set(grant.grant_id, grant);
      }
    }
    return [...live.values()].sort((a, b) => (a.grant_id < b.grant_id ? -1 : 1));
  }

  /** The grant that answers a request: the same operation, capability by capability, resource by resource (S-173). */
  match(
    request: Pick<ApprovalRequest, "operation" | "operation_fingerprint">,
  ): TreeApprovalGrant | undefined {
    const { capabilities, resources } = request.operation;
    return this.live().find(
      (grant) =>
        grant.operation_fingerprint === request.operation_fingerprint &&
        sameMembers(grant.capabilities, capabilities) &&
        sameMembers(grant.resources, resources),
    );
  }

  /**
   * Makes an answer hold for the tree. `record` writes it down; the rules cannot change meanwhile.
   * Rejects with `operation_changed` when `isStale` says that they have (S-170).
   */
  async grant(
    request: ApprovalRequest,
    isStale: () => boolean,
    record: (grant: TreeApprovalGrant) => Promise<void>,
  ): Promise<void> {
    await this.load();
    await this.#changes.run(async () => {
      if (isStale()) {
        throw new CookieError(
          "operation_changed",
          "the rules of this session changed after the request; it can be approved once or rejected",
        );
      }
      if (this.live().length >= MAX_LIVE_GRANTS) {
        throw new CookieError(
          "resource_limit",
          `these sessions remember ${MAX_LIVE_GRANTS} answers already; approve it once`,
        );
      }
      await record({
        grant_id: createId<TreeApprovalGrantId>(),
        root_session_id: this.rootSessionId,
        approval_id: request.approval_id,
        operation_fingerprint: request.operation_fingerprint,
        capabilities: request.operation.capabilities,
        resources: request.operation.resources,
        created_at: new Date().toISOString(),
      });
    });
  }

  /**
   * Changes the rules of one of the tree's sessions by `record`. Where that tightens an action, its grants are taken
   * back first, durably: when the journal cannot be written, the rules stay as they are (S-174, S-175).
   */
  changeRules(
    action: PermissionAction,
    isTightening: () => boolean,
    record: () => Promise<unknown>,
  ): Promise<void> {
    return this.#changes.run(async () => {
      if (this.#mayHold(action) && isTightening()) await this.#invalidate(action);
      await record();
    });
  }

  #mayHold(action: PermissionAction): boolean {
    return !this.#loaded || this.#of(action).length > 0;
  }

  #of(action: PermissionAction): TreeApprovalGrant[] {
    return this.live().filter((grant) => grant.capabilities.some((one) => one.action === action));
  }

  async #invalidate(action: PermissionAction): Promise<void> {
    await this.load();
    const grants = this.#of(action);
    if (grants.length === 0) return;
    const grantIds = grants.map((grant) => grant.grant_id);
    const digests = grants.flatMap(({ resources }) => resources.map((one) => one.binding_digest));
    await this.#sources.journal.append({
      root_session_id: this.rootSessionId,
      grant_ids: [...new Set(grantIds)].sort(),
      resource_digests: [...new Set(digests)].sort(),
    });
    for (const grantId of grantIds) this.#invalidated.add(grantId);
  }

  async #load(): Promise<void> {
    const growth = this.#growth;
    for (const [sessionId, grants] of await this.#sources.readAll()) {
      // One that is open here knows more.
      if (!this.#members.has(sessionId)) this.#members.set(sessionId, grants);
    }
    const invalidated = await this.#sources.journal.invalidatedIn(this.rootSessionId);
    for (const grantId of invalidated) this.#invalidated.add(grantId);
    this.#loaded = growth === this.#growth;
  }
}

/** True for an operation whose approval may be remembered: it outlives the process and no file is involved (S-173). */
export function offersTreeGrant({
  operation,
  trigger,
}: Pick<ApprovalRequest, "operation" | "trigger">): boolean {
  const { capabilities, resources } = operation;
  return (
    trigger === "permission_policy" &&
    resources.length > 0 &&
    resources.every((resource) => resource.binding_lifetime === "restart_stable") &&
    capabilities.every(({ action }) => action !== "read" && action !== "write")
  );
}

function sameMembers(one: readonly unknown[], other: readonly unknown[]): boolean {
  const written = (members: readonly unknown[]) => members.map(canonicalJson).sort().join("\n");
  return one.length === other.length && written(one) === written(other);
}
